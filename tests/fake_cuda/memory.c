/* Device memory: memfds, mapped into reserved ranges of addresses with the access that was set. */
#include "fake_cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The memory's memfd has a page more, which says what it is: nothing else can be imported. */
#define MARK_BYTES ((size_t)4096)
static const char mark[] = "memory of the fake CUDA device";

struct memory {
    struct fake_link link; /* in |handles| until it is released */
    size_t bytes;
    int fd;
    bool exportable, imported;
    unsigned uses; /* its handle, and mappings */
};

struct range { /* reserved, or mapped */
    struct fake_link link;
    uintptr_t at;
    size_t bytes;
    struct memory *memory;
};

static struct fake_link handles, reservations, mappings;
static size_t used;

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

static bool is_aligned(uint64_t at, uint64_t bytes) {
    return at % FAKE_GRANULARITY == 0 && bytes % FAKE_GRANULARITY == 0 && bytes > 0 &&
           at + bytes > at;
}

static struct range *add_range(struct fake_link *list, uintptr_t at, size_t bytes) {
    struct range *range = malloc(sizeof *range);
    if (range) {
        *range = (struct range){.at = at, .bytes = bytes};
        fake_add(list, range);
    }
    return range;
}

static void unuse(struct memory *memory) {
    if (--memory->uses == 0) {
        used -= memory->imported ? 0 : memory->bytes;
        close(memory->fd);
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
    CUcontext context;
    size_t total = 0;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && (!out_free || !out_total)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && (result = fake_cuDeviceTotalMem(&total, 0)) == CUDA_SUCCESS) {
        *out_total = total;
        *out_free = total > used ? total - used : 0;
    }
    return fake_leave(result);
}

CUresult fake_cuMemGetAllocationGranularity(size_t *granularity,
                                            const CUmemAllocationProp *properties, int option) {
    if (!fake_is_initialized()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (!granularity || !is_of_device(properties) || (option != 0 && option != 1)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *granularity = FAKE_GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult fake_cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment,
                                  CUdeviceptr address, unsigned long long flags) {
    (void)address; /* a wish */
    CUresult result = fake_enter_driver();
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    if (!out || !is_aligned(0, bytes) || (alignment & (alignment - 1)) != 0 || flags != 0) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    if (alignment < FAKE_GRANULARITY) {
        alignment = FAKE_GRANULARITY;
    }
    const size_t more = bytes + alignment;
    void *all = more < bytes ? MAP_FAILED
                             : mmap(NULL, more, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    const uintptr_t first = (uintptr_t)all, at = (first + alignment - 1) & ~(alignment - 1);
    if (at > first) {
        munmap(all, at - first);
    }
    if (first + more > at + bytes) {
        munmap((void *)(at + bytes), first + more - (at + bytes));
    }
    if (!add_range(&reservations, at, bytes)) {
        munmap((void *)at, bytes);
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *out = at;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    CUresult result = fake_enter_driver();
    struct range *range = find_range(&reservations, (uintptr_t)address);
    if (result == CUDA_SUCCESS && (!range || range->at != address || range->bytes != bytes)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    for (uintptr_t at = (uintptr_t)address; result == CUDA_SUCCESS && at < address + bytes;
         at += FAKE_GRANULARITY) {
        if (find_range(&mappings, at)) {
            result = CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (result == CUDA_SUCCESS) {
        munmap((void *)range->at, range->bytes);
        fake_remove(&reservations, range);
        free(range);
    }
    return fake_leave(result);
}

/* Fresh memory is not zero: a device's has what somebody else left there. */
static bool fill(int fd, size_t bytes) {
    const int flags = MAP_SHARED;
    unsigned char *at;
    if (ftruncate(fd, (off_t)(bytes + MARK_BYTES)) != 0 ||
        (at = mmap(NULL, bytes + MARK_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0)) == MAP_FAILED) {
        return false;
    }
    memset(at, 0xb5, bytes);
    memcpy(at + bytes, mark, sizeof mark);
    munmap(at, bytes + MARK_BYTES);
    return true;
}

static struct memory *add_memory(int fd, size_t bytes, bool exportable, bool imported) {
    struct memory *memory = malloc(sizeof *memory);
    if (memory) {
        *memory = (struct memory){
            .bytes = bytes, .fd = fd, .exportable = exportable, .imported = imported, .uses = 1};
        fake_add(&handles, memory);
    }
    return memory;
}

CUresult fake_cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                          const CUmemAllocationProp *properties, unsigned long long flags) {
    size_t total;
    CUresult result = fake_enter_driver();
    if (result == CUDA_SUCCESS &&
        (!out || !is_of_device(properties) || !is_aligned(0, bytes) || flags != 0)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && (result = fake_cuDeviceTotalMem(&total, 0)) == CUDA_SUCCESS &&
        (bytes > total || used > total - bytes)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    int fd = memfd_create("fake-cuda", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct memory *memory = NULL;
    if (fd < 0 || !fill(fd, bytes) ||
        !(memory = add_memory(fd, bytes, properties->requestedHandleTypes != 0, false))) {
        if (fd >= 0) {
            close(fd);
        }
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    used += bytes;
    *out = (uintptr_t)memory;
    return fake_leave(CUDA_SUCCESS);
}

static struct memory *find_memory(CUmemGenericAllocationHandle handle) {
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    return fake_has(&handles, memory) ? memory : NULL;
}

CUresult fake_cuMemRelease(CUmemGenericAllocationHandle handle) {
    CUresult result = fake_enter_driver();
    struct memory *memory = find_memory(handle);
    if (result == CUDA_SUCCESS && !memory) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        fake_remove(&handles, memory);
        unuse(memory);
    }
    return fake_leave(result);
}

CUresult fake_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags) {
    CUresult result = fake_enter_driver();
    struct memory *memory = find_memory(handle);
    if (result == CUDA_SUCCESS &&
        (!memory || flags != 0 || offset != 0 || !is_aligned(address, bytes) ||
         bytes > memory->bytes || !is_covered(&reservations, (uintptr_t)address, bytes))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; result == CUDA_SUCCESS && i < bytes; i += FAKE_GRANULARITY) {
        if (find_range(&mappings, (uintptr_t)address + i)) {
            result = CUDA_ERROR_INVALID_VALUE;
        }
    }
    struct range *range = NULL;
    if (result == CUDA_SUCCESS && !(range = add_range(&mappings, (uintptr_t)address, bytes))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS && mmap((void *)range->at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                                       memory->fd, 0) == MAP_FAILED) {
        fake_remove(&mappings, range);
        free(range);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        range->memory = memory;
        memory->uses++;
    }
    return fake_leave(result);
}

/* Whole mappings. */
CUresult fake_cuMemUnmap(CUdeviceptr address, size_t bytes) {
    CUresult result = fake_enter_driver();
    const uintptr_t end = (uintptr_t)address + bytes;
    struct range *first = find_range(&mappings, (uintptr_t)address);
    struct range *last = bytes > 0 ? find_range(&mappings, end - 1) : NULL;
    if (result == CUDA_SUCCESS &&
        (!first || !last || first->at != address || last->at + last->bytes != end ||
         !is_covered(&mappings, (uintptr_t)address, bytes))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS &&
        mmap((void *)first->at, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (uintptr_t at = (uintptr_t)address; result == CUDA_SUCCESS && at < end;) {
        struct range *range = find_range(&mappings, at);
        at += range->bytes;
        fake_remove(&mappings, range);
        unuse(range->memory);
        free(range);
    }
    return fake_leave(result);
}

CUresult fake_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                             size_t count) {
    static const int protections[] = {
        [CU_MEM_ACCESS_FLAGS_PROT_NONE] = PROT_NONE,
        [CU_MEM_ACCESS_FLAGS_PROT_READ] = PROT_READ,
        [2] = -1,
        [CU_MEM_ACCESS_FLAGS_PROT_READWRITE] = PROT_READ | PROT_WRITE,
    };
    CUresult result = fake_enter_driver();
    if (result == CUDA_SUCCESS &&
        (!access || count != 1 || access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
         access->flags < 0 || access->flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
         protections[access->flags] < 0 || !is_aligned(address, bytes) ||
         !is_covered(&mappings, (uintptr_t)address, bytes))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS &&
        mprotect((void *)(uintptr_t)address, bytes, protections[access->flags]) != 0) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return fake_leave(result);
}

CUresult fake_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, int type,
                                           unsigned long long flags) {
    CUresult result = fake_enter_driver();
    struct memory *memory = find_memory(handle);
    if (result == CUDA_SUCCESS && (!out || !memory || !memory->exportable || flags != 0 ||
                                   type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        int fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
        memcpy(out, &fd, sizeof fd);
        result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
    }
    return fake_leave(result);
}

/* How many bytes of memory are behind the descriptor; 0: it is something else. */
static size_t look_at(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (size_t)status.st_size % FAKE_GRANULARITY != MARK_BYTES) {
        return 0;
    }
    const size_t bytes = (size_t)status.st_size - MARK_BYTES;
    void *at = mmap(NULL, MARK_BYTES, PROT_READ, MAP_SHARED, fd, (off_t)bytes);
    if (at == MAP_FAILED) {
        return 0;
    }
    const bool ours = memcmp(at, mark, sizeof mark) == 0;
    munmap(at, MARK_BYTES);
    return ours ? bytes : 0;
}

CUresult fake_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *descriptor,
                                             int type) {
    CUresult result = fake_enter_driver();
    const int fd = (int)(intptr_t)descriptor;
    size_t bytes = 0;
    if (result == CUDA_SUCCESS &&
        (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || (bytes = look_at(fd)) == 0)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        return fake_leave(CUDA_ERROR_OPERATING_SYSTEM);
    }
    struct memory *memory = add_memory(own, bytes, true, true);
    if (!memory) {
        close(own);
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *out = (uintptr_t)memory;
    return fake_leave(CUDA_SUCCESS);
}
