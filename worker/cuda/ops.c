/* The CUDA backend's table of functions, and the short ones of them. */
#include "worker/cuda/backend.h"

#include "base/format.h"
#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE         4096u
#define WARM_UP_WORD 0x57415231u

/* -- life ------------------------------------------------------------------------------------- */

static void destroy(struct bhi_backend *backend) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    const struct bhi_cuda_api *cuda = &b->device.api;
    if (b->device.context && !b->base.lost) {
        (void)cuda->cuCtxSynchronize();
    }
    for (size_t i = 0; i < b->kernels.capacity; i++) {
        bhi_cuda_kernel_free(&b->device, b->kernels.entries[i].value);
    }
    for (size_t i = 0; i < b->buffers.capacity; i++) {
        bhi_cuda_buffer_destroy(&b->device, b->buffers.entries[i].value);
    }
    bhi_map_fini(&b->kernels);
    bhi_map_fini(&b->buffers);
    for (size_t i = 0; b->device.context && i < 64; i++) {
        for (int end = 0; end < 2; end++) {
            if (b->events[i][end]) {
                (void)cuda->cuEventDestroy(b->events[i][end]);
            }
        }
    }
    if (b->page_address) {
        (void)cuda->cuMemHostUnregister(b->page);
    }
    if (b->page && b->owns_page) {
        munmap(b->page, PAGE);
    }
    free(b->wanted.items);
    free(b->staged.items);
    free(b->writable.items);
    free(b->pinned.items);
    bhi_cuda_device_fini(&b->device);
    free(b);
}

static bool init_page(struct bhi_cuda_backend *b, struct bhi_markers *markers,
                      struct bhi_error *error) {
    void *page = markers;
    if (!page) {
        page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the markers");
            return false;
        }
        b->owns_page = true;
    }
    b->page = page;
    const char *call = "cuMemHostRegister";
    CUresult result = b->device.api.cuMemHostRegister(page, PAGE, CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        call = "cuMemHostGetDevicePointer";
        result = b->device.api.cuMemHostGetDevicePointer(&b->page_address, page, 0);
    }
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(error, &b->device.api, result, call);
    }
    return result == CUDA_SUCCESS;
}

static struct bhi_backend *create(const struct bhi_backend_config *config,
                                  struct bhi_error *error) {
    *error = (struct bhi_error){.command_index = BHI_NO_COMMAND};
    struct bhi_cuda_backend *b = calloc(1, sizeof *b);
    if (!b) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the backend");
        return NULL;
    }
    b->base =
        (struct bhi_backend){.ops = &bhi_cuda, .calls = config->calls, .compiles = UINT64_MAX};
    if (!bhi_cuda_device_init(&b->device, config, error) || !init_page(b, config->markers, error)) {
        destroy(&b->base);
        return NULL;
    }
    return &b->base;
}

static size_t devices(const struct bhi_backend *backend, struct bhi_msg_device *out,
                      size_t capacity) {
    const struct bhi_cuda_device *device = &bhi_cuda_const(backend)->device;
    const size_t count = bhi_cuda_device_messages(&device->api, device->index, out, NULL, capacity);
    size_t available, total;
    for (size_t i = 0; i < count; i++) {
        if (out[i].chosen && device->api.cuMemGetInfo(&available, &total) == CUDA_SUCCESS) {
            out[i].memory_free = available;
            out[i].memory_known = 1;
        }
    }
    return count;
}

static size_t survey(const struct bhi_backend_config *config, struct bhi_msg_device *out,
                     struct bhi_pci *out_pci, size_t capacity, struct bhi_error *error) {
    struct bhi_cuda_api api;
    return bhi_cuda_load(&api, config, error)
               ? bhi_cuda_device_messages(&api, UINT32_MAX, out, out_pci, capacity)
               : 0;
}

/* -- buffers ---------------------------------------------------------------------------------- */

static void drop(struct bhi_cuda_backend *b, struct bhi_cuda_buffer *buffer) {
    bhi_cuda_buffers_remove(&b->writable, buffer);
    const bool unpinned = bhi_cuda_buffer_unpin(&b->device, buffer) == CUDA_SUCCESS;
    bhi_cuda_buffers_remove(&b->pinned, buffer);
    b->imported_bytes -= buffer->error.status == BH_OK ? buffer->size : 0;
    bhi_cuda_buffer_destroy(&b->device, buffer);
    if (unpinned) {
        bhi_cuda_say_pinned(b);
    } else { /* a kernel could still write it */
        b->base.lost = true;
    }
}

static void detach(struct bhi_backend *backend, uint64_t id) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    struct bhi_cuda_buffer *buffer = bhi_map_remove(&b->buffers, id);
    if (buffer) {
        drop(b, buffer);
    }
}

static void keep(struct bhi_cuda_backend *b, uint64_t id, struct bhi_cuda_buffer *buffer) {
    if (!buffer) {
        b->base.starved = true; /* commands that name it report that */
        return;
    }
    b->imported_bytes += buffer->error.status == BH_OK ? buffer->size : 0;
    if (!bhi_map_put(&b->buffers, id, buffer)) {
        b->base.starved = true;
        drop(b, buffer);
    }
}

static void attach(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size,
                   enum bhi_attach access) {
    detach(backend, id);
    keep(bhi_cuda_of(backend), id, bhi_cuda_buffer_attach(id, fd, size, access));
}

static bool exports(const struct bhi_backend *backend) {
    (void)backend;
    return true;
}

static int make(struct bhi_backend *backend, uint64_t id, uint64_t size) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    int fd;
    detach(backend, id);
    keep(b, id, bhi_cuda_buffer_make(&b->device, id, size, &fd));
    return fd;
}

static bool is_full(const struct bhi_backend *backend, uint64_t id) {
    const struct bhi_cuda_buffer *buffer = bhi_map_get(&bhi_cuda_const(backend)->buffers, id);
    return buffer && buffer->error.status == BH_OUT_OF_DEVICE_MEMORY;
}

static bool clear(struct bhi_backend *backend, uint64_t id) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    struct bhi_cuda_buffer *buffer = bhi_map_get(&b->buffers, id);
    const char *call;
    if (!buffer || buffer->in_host || buffer->error.status != BH_OK) {
        return false;
    }
    const CUresult result = bhi_cuda_buffer_clear(&b->device, buffer, &call);
    if (result != CUDA_SUCCESS) {
        b->imported_bytes -= buffer->size;
        bhi_error_cuda(&buffer->error, &b->device.api, result, call);
        b->base.lost = true;
    }
    return result == CUDA_SUCCESS;
}

static void import(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    detach(backend, id);
    keep(b, id, bhi_cuda_buffer_import(&b->device, id, fd, size));
}

/* -- kernels ---------------------------------------------------------------------------------- */

static void unlink_reflected(struct bhi_cuda_backend *b, const struct bhi_cuda_kernel *kernel) {
    struct bhi_cuda_kernel *before = NULL;
    for (struct bhi_cuda_kernel *k = b->reflected_first; k; before = k, k = k->next_reflected) {
        if (k == kernel) {
            *(before ? &before->next_reflected : &b->reflected_first) = k->next_reflected;
            b->reflected_last = b->reflected_last == k ? before : b->reflected_last;
            return;
        }
    }
}

static void kernel_destroy(struct bhi_backend *backend, uint64_t id) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    struct bhi_cuda_kernel *kernel = bhi_map_remove(&b->kernels, id);
    if (kernel) {
        unlink_reflected(b, kernel);
        bhi_cuda_kernel_free(&b->device, kernel);
    }
}

static void kernel_create(struct bhi_backend *backend, const struct bhi_msg_kernel_create *info,
                          const void *code, const struct bhi_spec_constant *constants,
                          uint32_t constant_count) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    (void)constants; /* an image has none: the host refuses them */
    (void)constant_count;
    kernel_destroy(backend, info->kernel);
    struct bhi_cuda_kernel *kernel = bhi_cuda_kernel_new(info, code);
    if (kernel && !bhi_map_put(&b->kernels, info->kernel, kernel)) {
        bhi_cuda_kernel_free(&b->device, kernel);
        kernel = NULL;
    }
    b->base.starved |= !kernel;
}

static bool learn(struct bhi_backend *backend, uint64_t id, struct bhi_error *error) {
    if (backend->lost) {
        BHI_ERROR(error, BH_REASON_LOST, .text = "before");
        return false;
    }
    return bhi_cuda_find_kernel(bhi_cuda_of(backend), id, UINT64_MAX, error);
}

static bool next_reflection(struct bhi_backend *backend, struct bhi_msg_kernel_info *out,
                            struct bhi_msg_kernel_binding *bindings) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    struct bhi_cuda_kernel *kernel = b->reflected_first;
    if (!kernel) {
        return false;
    }
    unlink_reflected(b, kernel);
    kernel->next_reflected = NULL;
    *out = (struct bhi_msg_kernel_info){.kernel = kernel->id,
                                        .bindings = kernel->parameter_count,
                                        .local_x = 1,
                                        .local_y = 1,
                                        .local_z = 1};
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        bindings[i] = (struct bhi_msg_kernel_binding){.kernel = kernel->id,
                                                      .index = i,
                                                      .binding = i,
                                                      .kind = BH_BINDING_PARAMETER,
                                                      .access = BH_ACCESS_READ_WRITE,
                                                      .count = kernel->parameters[i].size};
    }
    return true;
}

/* -- the rest --------------------------------------------------------------------------------- */

static void counts(const struct bhi_backend *backend, struct bhi_backend_counts *out) {
    const struct bhi_cuda_backend *b = bhi_cuda_const(backend);
    *out = (struct bhi_backend_counts){.queue_submits = b->submits,
                                       .pipelines = b->kernels.count,
                                       .imported_bytes = b->imported_bytes};
}

const struct bhi_backend_ops bhi_cuda = {
    .create = create,
    .devices = devices,
    .survey = survey,
    .destroy = destroy,
    .warm_up = bhi_cuda_warm_up,
    .attach = attach,
    .exports = exports,
    .make = make,
    .is_full = is_full,
    .clear = clear,
    .import = import,
    .detach = detach,
    .kernel_create = kernel_create,
    .kernel_destroy = kernel_destroy,
    .learn = learn,
    .next_reflection = next_reflection,
    .run = bhi_cuda_run,
    .warm = bhi_cuda_warm,
    .counts = counts,
};
