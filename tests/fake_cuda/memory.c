/* Device memory: memfds, mapped into reserved ranges of addresses with the access that was set. */
#include "fake_cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* All memfds have one length, which they get before a worker's filter. The last page of it says what it
 * is, and how much of it is memory: nothing else can be imported. */
#define FILE_BYTES ((size_t)4 << 30)
#define MARK_AT    (FILE_BYTES - 4096)
struct mark {
    char text[32];
    size_t bytes;
    CUdevice device;
};
static const char mark_text[32] = "memory of the fake CUDA device";

struct memory {
    struct fake_link link; /* in |handles| until it is released */
    size_t bytes;
    CUdevice device;
    void *home; /* mapped without access: what cuMemMap() maps again elsewhere */
    int fd;     /* for an export; -1: there was one, or it is imported */
    bool exportable, imported;
    unsigned uses; /* its handle, and mappings */
};

/* Those that are ready. */
static int ready[256];
static size_t ready_count;
static bool keeps_ready;

struct range { /* reserved, or mapped */
    struct fake_link link;
    uintptr_t at;
    size_t bytes;
    struct memory *memory;
};

static struct fake_link handles, reservations, mappings;
static size_t used;

/* A test that makes much memory has small pages. */
static size_t granularity(void) {
    return fake_setting("FAKE_CUDA_GRANULARITY", 2 << 20);
}

static struct range *find_range(const struct fake_link *list, uintptr_t at) {
    for (struct fake_link *link = list->next; link; link = link->next) {
        struct range *range = (struct range *)(void *)link;
        if (at >= range->at && at - range->at < range->bytes) {
            return range;
        }
    }
    return NULL;
}

/* The bytes are in adjacent ranges. */
static bool is_covered(const struct fake_link *list, uintptr_t at, size_t bytes) {
    struct range *range;
    while ((range = find_range(list, at)) && bytes > range->bytes - (at - range->at)) {
        bytes -= range->bytes - (at - range->at);
        at = range->at + range->bytes;
    }
    return range;
}

/* Nothing is mapped there. */
static bool is_free(uintptr_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += granularity()) {
        if (find_range(&mappings, at + i)) {
            return false;
        }
    }
    return true;
}

static bool is_aligned(uint64_t at, uint64_t bytes) {
    return at % granularity() == 0 && bytes % granularity() == 0 && bytes > 0 && at + bytes > at;
}

static struct range *add_range(struct fake_link *list, uintptr_t at, size_t bytes) {
    struct range *range = malloc(sizeof *range);
    if (range) {
        *range = (struct range){.at = at, .bytes = bytes};
        fake_add(list, range);
    }
    return range;
}

static int new_file(void) {
    int fd = memfd_create("fake-cuda", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)FILE_BYTES) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

CUresult fake_memory_prepare(void) {
    for (keeps_ready = true; ready_count < sizeof ready / sizeof ready[0]; ready_count++) {
        FAKE_REQUIRE((ready[ready_count] = new_file()) >= 0, OPERATING_SYSTEM);
    }
    return CUDA_SUCCESS;
}

void fake_memory_forget(void) {
    keeps_ready = false;
    while (ready_count > 0) {
        close(ready[--ready_count]);
    }
}

/* A worker's filter kills it here if it needs more than there were. */
static int take_file(void) {
    return ready_count > 0 ? ready[--ready_count] : new_file();
}

static void give_file(int fd) {
    if (keeps_ready && ready_count < sizeof ready / sizeof ready[0]) {
        ready[ready_count++] = fd;
    } else {
        close(fd);
    }
}

static void unuse(struct memory *memory) {
    if (--memory->uses == 0) {
        used -= memory->imported ? 0 : memory->bytes;
        munmap(memory->home, memory->bytes);
        if (memory->fd >= 0) {
            give_file(memory->fd);
        }
        free(memory);
    }
}

static bool is_of_device(const CUmemAllocationProp *properties) {
    return properties && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           (properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0 &&
           fake_is_device(properties->location.id);
}

CUresult fake_cuMemGetInfo(size_t *out_free, size_t *out_total) {
    FAKE_ENTER(context);
    (void)context;
    FAKE_REQUIRE(out_free && out_total, INVALID_VALUE);
    FAKE_CHECK(fake_cuDeviceTotalMem(out_total, 0));
    *out_free = *out_total > used ? *out_total - used : 0;
    return CUDA_SUCCESS;
}

CUresult fake_cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *properties,
                                            int option) {
    enum { RECOMMENDED = 1 };
    FAKE_CHECK(fake_check_driver());
    FAKE_REQUIRE(out && is_of_device(properties), INVALID_VALUE);
    FAKE_REQUIRE(option >= CU_MEM_ALLOC_GRANULARITY_MINIMUM && option <= RECOMMENDED,
                 INVALID_VALUE);
    *out = granularity();
    return CUDA_SUCCESS;
}

CUresult fake_cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment,
                                  CUdeviceptr address, unsigned long long flags) {
    (void)address; /* a wish */
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(out && is_aligned(0, bytes) && flags == 0, INVALID_VALUE);
    FAKE_REQUIRE((alignment & (alignment - 1)) == 0, INVALID_VALUE);
    if (alignment < granularity()) {
        alignment = granularity();
    }
    const size_t more = bytes + alignment;
    FAKE_REQUIRE(more > bytes, OUT_OF_MEMORY);
    void *all = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FAKE_REQUIRE(all != MAP_FAILED, OUT_OF_MEMORY);
    const uintptr_t first = (uintptr_t)all, at = (first + alignment - 1) & ~(alignment - 1);
    if (at > first) {
        munmap(all, at - first);
    }
    munmap((void *)(at + bytes), first + more - (at + bytes)); /* never all of it */
    if (!add_range(&reservations, at, bytes)) {
        munmap((void *)at, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = at;
    return CUDA_SUCCESS;
}

CUresult fake_cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    FAKE_ENTER_DRIVER();
    struct range *range = find_range(&reservations, (uintptr_t)address);
    FAKE_REQUIRE(range && range->at == address && range->bytes == bytes, INVALID_VALUE);
    FAKE_REQUIRE(is_free((uintptr_t)address, bytes), INVALID_VALUE);
    munmap((void *)range->at, range->bytes);
    fake_remove(&reservations, range);
    free(range);
    return CUDA_SUCCESS;
}

/* Fresh memory is not zero: a device's has what somebody else left there. */
static bool fill(int fd, size_t bytes, CUdevice device) {
    struct mark *mark =
        mmap(NULL, sizeof *mark, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)MARK_AT);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const bool good = mark != MAP_FAILED && at != MAP_FAILED;
    if (good) {
        memcpy(mark->text, mark_text, sizeof mark_text);
        mark->bytes = bytes;
        mark->device = device;
        memset(at, 0xb5, bytes);
    }
    if (mark != MAP_FAILED) {
        munmap(mark, sizeof *mark);
    }
    if (at != MAP_FAILED) {
        munmap(at, bytes);
    }
    return good;
}

/* The memory in |from|. It keeps |fd|, or none with -1. */
static CUresult add_memory(int from, int fd, size_t bytes, CUdevice device, bool exportable,
                           CUmemGenericAllocationHandle *out) {
    struct memory *memory = calloc(1, sizeof *memory);
    FAKE_REQUIRE(memory, OUT_OF_MEMORY);
    *memory = (struct memory){.bytes = bytes, .device = device, .fd = fd, .uses = 1};
    memory->exportable = exportable;
    memory->imported = fd < 0;
    memory->home = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, from, 0);
    if (memory->home == MAP_FAILED) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fake_add(&handles, memory);
    *out = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUresult fake_cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                          const CUmemAllocationProp *properties, unsigned long long flags) {
    size_t total;
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(out && is_of_device(properties) && flags == 0, INVALID_VALUE);
    FAKE_REQUIRE(is_aligned(0, bytes), INVALID_VALUE);
    FAKE_CHECK(fake_cuDeviceTotalMem(&total, 0));
    FAKE_REQUIRE(used <= total && bytes <= total - used && bytes <= MARK_AT, OUT_OF_MEMORY);
    const int fd = take_file();
    FAKE_REQUIRE(fd >= 0, OUT_OF_MEMORY);
    const CUdevice device = properties->location.id;
    if (!fill(fd, bytes, device) ||
        add_memory(fd, fd, bytes, device, properties->requestedHandleTypes != 0, out) !=
            CUDA_SUCCESS) {
        give_file(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    used += bytes;
    return CUDA_SUCCESS;
}

CUresult fake_cuMemRelease(CUmemGenericAllocationHandle handle) {
    FAKE_ENTER_DRIVER();
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    FAKE_REQUIRE(fake_has(&handles, memory), INVALID_VALUE);
    fake_remove(&handles, memory);
    unuse(memory);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags) {
    FAKE_ENTER_DRIVER();
    const uintptr_t at = (uintptr_t)address;
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    FAKE_REQUIRE(fake_has(&handles, memory) && flags == 0 && offset == 0, INVALID_VALUE);
    FAKE_REQUIRE(is_aligned(address, bytes) && bytes <= memory->bytes, INVALID_VALUE);
    FAKE_REQUIRE(is_covered(&reservations, at, bytes) && is_free(at, bytes), INVALID_VALUE);
    struct range *range = add_range(&mappings, at, bytes);
    FAKE_REQUIRE(range, OUT_OF_MEMORY);
    /* Of shared memory whose old length is 0, that is a second mapping. */
    if (mremap(memory->home, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)at) == MAP_FAILED) {
        fake_remove(&mappings, range);
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->memory = memory;
    memory->uses++;
    return CUDA_SUCCESS;
}

/* Whole mappings. */
CUresult fake_cuMemUnmap(CUdeviceptr address, size_t bytes) {
    FAKE_ENTER_DRIVER();
    const uintptr_t end = (uintptr_t)address + bytes;
    struct range *first = find_range(&mappings, (uintptr_t)address);
    struct range *last = find_range(&mappings, end - 1);
    FAKE_REQUIRE(first && first->at == address && last && last->at + last->bytes == end &&
                     is_covered(&mappings, first->at, bytes),
                 INVALID_VALUE);
    void *over = mmap((void *)first->at, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    FAKE_REQUIRE(over != MAP_FAILED, OUT_OF_MEMORY);
    for (uintptr_t at = (uintptr_t)address; at < end;) {
        struct range *range = find_range(&mappings, at);
        at += range->bytes;
        fake_remove(&mappings, range);
        unuse(range->memory);
        free(range);
    }
    return CUDA_SUCCESS;
}

CUresult fake_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                             size_t count) {
    static const int protections[] = {
        [CU_MEM_ACCESS_FLAGS_PROT_NONE] = PROT_NONE,
        [CU_MEM_ACCESS_FLAGS_PROT_READ] = PROT_READ,
        [2] = -1,
        [CU_MEM_ACCESS_FLAGS_PROT_READWRITE] = PROT_READ | PROT_WRITE,
    };
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(access && count == 1 && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     fake_is_device(access->location.id),
                 INVALID_VALUE);
    FAKE_REQUIRE(access->flags >= 0 && access->flags <= CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
                     protections[access->flags] >= 0,
                 INVALID_VALUE);
    FAKE_REQUIRE(is_aligned(address, bytes) && is_covered(&mappings, (uintptr_t)address, bytes),
                 INVALID_VALUE);
    FAKE_REQUIRE(mprotect((void *)(uintptr_t)address, bytes, protections[access->flags]) == 0,
                 OUT_OF_MEMORY);
    return CUDA_SUCCESS;
}

/* Once: the descriptor that is ready goes with it. */
CUresult fake_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, int type,
                                           unsigned long long flags) {
    FAKE_ENTER_DRIVER();
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    FAKE_REQUIRE(out && fake_has(&handles, memory) && memory->exportable && flags == 0 &&
                     type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                 INVALID_VALUE);
    FAKE_REQUIRE(memory->fd >= 0, NOT_SUPPORTED);
    memcpy(out, &memory->fd, sizeof memory->fd);
    memory->fd = -1;
    return CUDA_SUCCESS;
}

/* How many bytes of memory are behind the descriptor; 0: it is something else. */
static size_t look_at(int fd, CUdevice *out_device) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size != (off_t)FILE_BYTES) {
        return 0;
    }
    struct mark *mark = mmap(NULL, sizeof *mark, PROT_READ, MAP_SHARED, fd, (off_t)MARK_AT);
    if (mark == MAP_FAILED) {
        return 0;
    }
    const size_t bytes =
        memcmp(mark->text, mark_text, sizeof mark_text) == 0 && mark->bytes <= MARK_AT ? mark->bytes
                                                                                       : 0;
    *out_device = mark->device;
    munmap(mark, sizeof *mark);
    return bytes;
}

CUresult fake_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *descriptor,
                                             int type) {
    const int fd = (int)(intptr_t)descriptor;
    CUdevice device;
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(out && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    const size_t bytes = look_at(fd, &device);
    FAKE_REQUIRE(bytes > 0, INVALID_VALUE);
    return add_memory(fd, -1, bytes, device, true, out);
}

CUresult fake_cuPointerGetAttribute(void *out, int attribute, CUdeviceptr pointer) {
    FAKE_ENTER_DRIVER();
    const struct range *range = find_range(&mappings, (uintptr_t)pointer);
    FAKE_REQUIRE(out && attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL && range, INVALID_VALUE);
    memcpy(out, &range->memory->device, sizeof range->memory->device);
    return CUDA_SUCCESS;
}
