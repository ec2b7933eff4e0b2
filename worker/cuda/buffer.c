#include "worker/cuda/buffer.h"

#include "base/memfd.h"
#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* -- host memory ------------------------------------------------------------------------------ */

static void *map(struct bhi_cuda_buffer *b, int protection, int fd) {
    void *pointer = mmap(NULL, b->mapped, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (pointer == MAP_FAILED) {
        BHI_ERROR(&b->error, BH_REASON_HOST_MEMORY, NULL, .value = b->mapped, .sys_errno = errno,
                  .text = "a buffer, which is mapped");
        return NULL;
    }
    return pointer;
}

static struct bhi_cuda_buffer *new_buffer(uint64_t id, uint64_t size) {
    struct bhi_cuda_buffer *b = calloc(1, sizeof *b);
    if (b) {
        b->id = id;
        b->size = size;
        b->writable = true;
    }
    return b;
}

struct bhi_cuda_buffer *bhi_cuda_buffer_attach(uint64_t id, int fd, uint64_t size,
                                               enum bhi_attach access) {
    struct bhi_cuda_buffer *b = new_buffer(id, size);
    if (!b) {
        close(fd);
        return NULL;
    }
    b->in_host = true;
    b->writable = access == BHI_ATTACH_WRITE;
    b->mapped = bhi_page_round(size);
    const int err = bhi_memfd_verify(fd, size, 0);
    if (err == -ENOMEM) {
        BHI_ERROR_SAY(&b->error, BH_REASON_HOST_MEMORY, "buffer %llu", (unsigned long long)id);
    } else if (err != 0 || b->mapped == 0) {
        BHI_ERROR(&b->error, BH_REASON_DEVICE_STEP, "use the memory of a buffer", .value = id,
                  .sys_errno = err != 0 ? -err : EINVAL);
    } else {
        b->reads = map(b, PROT_READ, fd);
        b->writes = b->reads && b->writable ? map(b, PROT_READ | PROT_WRITE, fd) : NULL;
    }
    close(fd);
    return b;
}

bool bhi_cuda_buffer_register(const struct bhi_cuda_device *d, struct bhi_cuda_buffer *b,
                              struct bhi_error *error) {
    if (b->registered || !b->in_host) {
        return true;
    }
    const char *call = "cuMemHostRegister";
    CUresult result = d->api.cuMemHostRegister(
        b->reads, b->mapped, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY);
    if (result == CUDA_SUCCESS) {
        call = "cuMemHostGetDevicePointer";
        result = d->api.cuMemHostGetDevicePointer(&b->registered, b->reads, 0);
        if (result != CUDA_SUCCESS) { /* or it could not be registered again */
            b->registered = 0;
            (void)d->api.cuMemHostUnregister(b->reads);
        }
    }
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(error, &d->api, result, call);
    }
    return result == CUDA_SUCCESS;
}

bool bhi_cuda_buffer_pin(const struct bhi_cuda_device *d, struct bhi_cuda_buffer *b) {
    b->pinned = d->api.cuMemHostRegister(b->writes, b->mapped, 0) == CUDA_SUCCESS;
    return b->pinned;
}

CUresult bhi_cuda_buffer_unpin(const struct bhi_cuda_device *d, struct bhi_cuda_buffer *b) {
    const CUresult result = b->pinned ? d->api.cuMemHostUnregister(b->writes) : CUDA_SUCCESS;
    b->pinned = b->pinned && result != CUDA_SUCCESS;
    return result;
}

/* Says how much there is. */
static void say_sizes(const struct bhi_cuda_device *d, uint64_t bytes, struct bhi_error *error) {
    size_t available = 0, total = 0;
    char text[32] = "";
    if (d->api.cuMemGetInfo(&available, &total) == CUDA_SUCCESS) {
        bhi_format(text, sizeof text, "%zu", available);
    }
    BHI_ERROR(error, BH_REASON_DEVICE_HEAP, NULL, .value = bytes, .limit = total,
              .text = text[0] != '\0' ? text : NULL);
}

/* -- device memory ---------------------------------------------------------------------------- */

CUresult bhi_cuda_buffer_clear(const struct bhi_cuda_device *d, struct bhi_cuda_buffer *b,
                               const char **out_call) {
    *out_call = "cuMemSetAccess";
    const bool writable = b->memory.writable;
    CUresult result = writable ? CUDA_SUCCESS : bhi_cuda_memory_allow(d, &b->memory, true);
    if (result == CUDA_SUCCESS) {
        *out_call = "cuMemsetD8Async";
        result = d->api.cuMemsetD8Async(b->memory.address, 0, b->memory.bytes, d->stream);
    }
    if (result == CUDA_SUCCESS) {
        *out_call = "cuStreamSynchronize";
        result = d->api.cuStreamSynchronize(d->stream);
    }
    if (result == CUDA_SUCCESS && !writable) {
        *out_call = "cuMemSetAccess";
        result = bhi_cuda_memory_allow(d, &b->memory, false);
    }
    return result;
}

/* Makes the buffer's memory. Fresh memory has what others have left in it (D3). */
static CUresult make_clean(const struct bhi_cuda_device *d, struct bhi_cuda_buffer *b,
                           struct bhi_error *error) {
    const char *call;
    CUresult result = bhi_cuda_memory_make(d, &b->memory, b->size > 0 ? b->size : 1, -1, &call);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        say_sizes(d, b->size, error);
        return result;
    }
    if (result == CUDA_SUCCESS) {
        result = bhi_cuda_buffer_clear(d, b, &call);
    }
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(error, &d->api, result, call);
        (void)d->api.cuStreamSynchronize(d->stream); /* it may be about to write there */
        bhi_cuda_memory_free(d, &b->memory);
    }
    return result;
}

bool bhi_cuda_buffer_stage(const struct bhi_cuda_device *d, struct bhi_cuda_buffer *b,
                           struct bhi_error *error) {
    return b->memory.address || make_clean(d, b, error) == CUDA_SUCCESS;
}

struct bhi_cuda_buffer *bhi_cuda_buffer_make(const struct bhi_cuda_device *d, uint64_t id,
                                             uint64_t size, int *out_fd) {
    struct bhi_cuda_buffer *b = new_buffer(id, size);
    CUresult result;
    *out_fd = -1;
    if (!b || make_clean(d, b, &b->error) != CUDA_SUCCESS) {
        return b;
    }
    *out_fd = bhi_cuda_memory_export(d, &b->memory, &result);
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(&b->error, &d->api, result, "cuMemExportToShareableHandle");
        bhi_cuda_memory_free(d, &b->memory);
    }
    return b;
}

struct bhi_cuda_buffer *bhi_cuda_buffer_import(const struct bhi_cuda_device *d, uint64_t id, int fd,
                                               uint64_t size) {
    struct bhi_cuda_buffer *b = new_buffer(id, size);
    const char *call;
    if (b) {
        const CUresult result = bhi_cuda_memory_make(d, &b->memory, size > 0 ? size : 1, fd, &call);
        if (result != CUDA_SUCCESS) {
            bhi_error_cuda(&b->error, &d->api, result, call);
            b->error.bad_memory = result == CUDA_ERROR_OUT_OF_MEMORY ? 0 : id;
        }
    }
    close(fd);
    return b;
}

void bhi_cuda_buffer_destroy(const struct bhi_cuda_device *d, struct bhi_cuda_buffer *b) {
    if (!b) {
        return;
    }
    if (b->registered) {
        (void)d->api.cuMemHostUnregister(b->reads);
    }
    (void)bhi_cuda_buffer_unpin(d, b);
    bhi_cuda_memory_free(d, &b->memory);
    if (b->reads) {
        munmap(b->reads, b->mapped);
    }
    if (b->writes) {
        munmap(b->writes, b->mapped);
    }
    free(b);
}
