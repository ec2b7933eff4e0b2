/* Buffers in the host's own CUDA (bulkhead/cuda.h).
 *
 * What is mapped is what the supervisor has recorded: the descriptor and the size of the buffer's block, on
 * the GPU that its stream runs on. A worker has made the descriptor, and counts as compromised; so what comes
 * out of the import is checked before anybody sees it: the driver maps no more than there is, and says
 * which GPU it is on. */
#include "base/detail.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/selector.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/cuda/driver.h"
#include "supervisor/event/event.h"
#include "supervisor/stream/stream.h"

#include <bulkhead/cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct bh_cuda_view {
    struct bh_buffer *place; /* referenced: its memory stays the buffer's */
    const struct bhi_host_cuda *cuda;
    CUdevice device;
    CUdeviceptr address;
    size_t bytes; /* mapped; 0: none */
    bool writable;
};

/* Where a buffer is. */
struct spot {
    uint8_t uuid[16];
    char name[128];
};

/* Lock held. */
static bh_status look(const struct bh_buffer *place, struct spot *out, const char *call,
                      bh_detail *detail) {
    const struct bhi_stream_device *device = /* of an empty buffer, too, which has no memory */
        place->device ? &place->device->stream->runs_on : NULL;
    if (!device || !bhi_selector_is_cuda(device->selector)) {
        return BHI_FAIL(detail, call, BH_REASON_NOT_ON_CUDA, "the buffer");
    }
    memcpy(out->uuid, device->uuid, sizeof out->uuid);
    out->uuid[0] ^= 0xff; /* bhi_stream_learn_device */
    memcpy(out->name, device->name, sizeof out->name);
    return BH_OK;
}

BH_API bh_status bh_buffer_cuda_device(bh_buffer *buffer, int *out_device, bh_detail *detail) {
    static const char call[] = "bh_buffer_cuda_device";
    struct spot spot;
    const struct bhi_host_cuda *cuda;
    CUdevice device;
    BHI_NEED_LIVE(buffer, call, detail);
    BHI_NEED(out_device, call, detail);
    BHI_TRY(bhi_context_check_fork(buffer->context, call, detail));
    bhi_context_lock(buffer->context);
    const bh_status status = look(bhi_buffer_place(buffer), &spot, call, detail);
    bhi_context_unlock(buffer->context);
    BHI_TRY(status);
    BHI_TRY(bhi_host_cuda_load(&cuda, call, detail));
    return bhi_host_cuda_find(cuda, spot.uuid, spot.name, &device, out_device, call, detail);
}

/* The host may have changed the content: copies of it are old. Lock held. */
static void note_change(struct bh_buffer *place) {
    bh_context *context = place->context;
    if (place->device->state == BHI_DEVICE_LEFT) {
        return;
    }
    context->drop_replicas(context, place, NULL);
    place->device->version = bhi_context_new_id(context);
    place->device->written_by = 0;
}

/* Waits until the content may be used and there is memory with it. *out_place is referenced, *out_fd a
 * descriptor of its own; -1: the buffer is empty. */
static bh_status pin(struct bh_buffer *buffer, bool writes, uint64_t deadline_ns,
                     struct bh_buffer **out_place, struct spot *out_spot, int *out_fd,
                     const char *call, bh_detail *detail) {
    bh_context *context = buffer->context;
    for (;;) {
        BHI_TRY(bhi_buffer_acquire(buffer, writes ? BHI_HOST_WRITE : BHI_HOST_READ, deadline_ns,
                                   call, detail));
        bhi_context_lock(context);
        struct bh_buffer *place = bhi_buffer_place(buffer);
        bh_status status = look(place, out_spot, call, detail);
        const struct bhi_device_memory *memory = place->device;
        const bool made = memory && memory->state == BHI_DEVICE_MADE && !memory->bad;
        const bool free = !bhi_content_obstacle(&place->content, writes);
        if (status == BH_OK && free && (made || !buffer->size)) {
            *out_fd = buffer->size ? fcntl(memory->block->fd, F_DUPFD_CLOEXEC, 0) : -1;
            if (buffer->size && *out_fd < 0) {
                status = BHI_FAIL(detail, call, BH_REASON_SYSTEM_CALL, "fcntl", .sys_errno = errno);
            } else {
                bhi_buffer_ref(place);
                *out_place = place;
            }
            bhi_context_unlock(context);
            return status;
        }
        bhi_context_unlock(context);
        BHI_TRY(status);
        /* No worker has made the memory yet, or cleared it: reading makes one do that. */
        uint8_t byte;
        const uint64_t now_ns = bhi_now_ns();
        const uint64_t left_ns = deadline_ns == BH_FOREVER ? BH_FOREVER
                                 : deadline_ns > now_ns    ? deadline_ns - now_ns
                                                           : 0;
        BHI_TRY(bh_buffer_read(buffer, 0, &byte, 1, left_ns, detail));
    }
}

/* Maps the memory behind |fd| at view->address. The primary context is current. */
static CUresult map(struct bh_cuda_view *view, int fd, uint64_t size, const char **out_function) {
    const struct bhi_cuda_api *api = &view->cuda->api;
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = view->device},
    };
    const CUmemAccessDesc access = {.location = properties.location,
                                    .flags = view->writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                            : CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmemGenericAllocationHandle handle;
    size_t granularity = 0;
    *out_function = "cuMemGetAllocationGranularity";
    CUresult result = api->cuMemGetAllocationGranularity(&granularity, &properties,
                                                         CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS || granularity == 0) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_UNKNOWN;
    }
    const size_t bytes = (size + granularity - 1) / granularity * granularity;
    *out_function = "cuMemImportFromShareableHandle";
    result = api->cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)fd,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *out_function = "cuMemAddressReserve";
    result = api->cuMemAddressReserve(&view->address, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) {
        *out_function = "cuMemMap"; /* which fails if there is less */
        result = api->cuMemMap(view->address, bytes, 0, handle, 0);
        if (result == CUDA_SUCCESS) {
            view->bytes = bytes;
        } else {
            (void)api->cuMemAddressFree(view->address, bytes);
        }
    }
    (void)api->cuMemRelease(handle); /* a mapping keeps the memory */
    if (result == CUDA_SUCCESS) {
        *out_function = "cuMemSetAccess";
        result = api->cuMemSetAccess(view->address, bytes, &access, 1);
    }
    return result;
}

static void unmap(struct bh_cuda_view *view) {
    (void)view->cuda->api.cuMemUnmap(view->address, view->bytes);
    (void)view->cuda->api.cuMemAddressFree(view->address, view->bytes);
    view->bytes = 0;
}

static bh_status open_view(struct bh_cuda_view *view, const struct spot *spot, int fd,
                           const char *call, bh_detail *detail) {
    int number, there = -1;
    const char *function = "";
    BHI_TRY(bhi_host_cuda_load(&view->cuda, call, detail));
    BHI_TRY(bhi_host_cuda_find(view->cuda, spot->uuid, spot->name, &view->device, &number, call,
                               detail));
    if (fd < 0) {
        return BH_OK;
    }
    BHI_TRY(bhi_host_cuda_enter(view->cuda, view->device, call, detail));
    CUresult result = map(view, fd, view->place->size, &function);
    if (result == CUDA_SUCCESS) {
        function = "cuPointerGetAttribute";
        result = view->cuda->host.cuPointerGetAttribute(&there, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                        view->address);
    }
    bh_status status = BH_OK;
    if (result != CUDA_SUCCESS) {
        status = bhi_host_cuda_fail(view->cuda, result, function, call, detail);
    } else if (there != number) {
        status = BHI_FAIL(
            detail, call, BH_REASON_HOST_CUDA, "the import", .value = (uint64_t)there,
            .text = BHI_SAY("a worker's memory is on device %d, not on %d", there, number));
    }
    if (status == BH_OK) {
        /* The context stays while the view is there. */
        CUcontext context;
        (void)view->cuda->host.cuDevicePrimaryCtxRetain(&context, view->device);
    } else if (view->bytes) {
        unmap(view);
    }
    bhi_host_cuda_leave(view->cuda, view->device);
    return status;
}

static void drop_place(struct bh_cuda_view *view) {
    bh_context *context = view->place->context;
    bhi_context_retain(context);
    bhi_context_lock(context);
    if (view->writable) {
        note_change(view->place);
    }
    bhi_buffer_unref_locked(view->place);
    bhi_context_pump_unlock(context);
    bhi_context_unref(context);
    free(view);
}

static bh_status create(struct bh_buffer *buffer, bool writes, uint64_t deadline_ns,
                        struct bh_cuda_view **out_view, const char *call, bh_detail *detail) {
    struct spot spot;
    int fd = -1;
    struct bh_cuda_view *view = calloc(1, sizeof *view);
    if (!view) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    view->writable = writes;
    bh_status status = pin(buffer, writes, deadline_ns, &view->place, &spot, &fd, call, detail);
    if (status != BH_OK) {
        free(view);
        return status;
    }
    status = open_view(view, &spot, fd, call, detail);
    bhi_fd_close(&fd);
    if (status != BH_OK) {
        drop_place(view);
        return status;
    }
    *out_view = view;
    return BH_OK;
}

BH_API bh_status bh_cuda_view_create(bh_buffer *buffer, bh_map_intent intent, uint64_t timeout_ns,
                                     bh_cuda_view **out_view, bh_detail *detail) {
    static const char call[] = "bh_cuda_view_create";
    BHI_NEED(out_view, call, detail);
    *out_view = NULL;
    BHI_NEED_LIVE(buffer, call, detail);
    if (intent != BH_MAP_READ && intent != BH_MAP_READ_WRITE) {
        return BHI_FAIL(detail, call, BH_REASON_UNKNOWN_VALUE, "intent", .value = (uint64_t)intent,
                        .text = "BH_MAP_READ or BH_MAP_READ_WRITE");
    }
    return create(buffer, intent == BH_MAP_READ_WRITE, bhi_deadline_ns(timeout_ns), out_view, call,
                  detail);
}

BH_API uint64_t bh_cuda_view_address(const bh_cuda_view *view) {
    return view && view->bytes ? view->address : 0;
}

BH_API void bh_cuda_view_release(bh_cuda_view *view) {
    if (!view) {
        return;
    }
    if (bhi_context_forked(view->place->context)) {
        free(view); /* the mapping is the parent's */
        return;
    }
    const struct bhi_host_cuda *cuda = view->cuda;
    if (view->bytes && bhi_host_cuda_enter(cuda, view->device, "", NULL) == BH_OK) {
        /* A temporary tensor dies while the kernel that reads it is queued. */
        (void)cuda->api.cuCtxSynchronize();
        unmap(view);
        (void)cuda->host.cuDevicePrimaryCtxRelease(view->device);
        bhi_host_cuda_leave(cuda, view->device);
    }
    drop_place(view);
}

/* -- copies ------------------------------------------------------------------------------------- */

/* Of |address|, which is on |device|, to a view, or to memory of the host. */
static bh_status copy(const struct bhi_host_cuda *cuda, CUdevice device, uint64_t address,
                      CUdeviceptr to, void *host, uint64_t size, const char *call,
                      bh_detail *detail) {
    BHI_TRY(bhi_host_cuda_enter(cuda, device, call, detail));
    const char *function = "cuCtxSynchronize";
    CUresult result = cuda->api.cuCtxSynchronize();
    if (result == CUDA_SUCCESS) {
        function = host ? "cuMemcpyDtoHAsync" : "cuMemcpyDtoDAsync";
        result = host ? cuda->api.cuMemcpyDtoHAsync(host, address, size, NULL)
                      : cuda->api.cuMemcpyDtoDAsync(to, address, size, NULL);
    }
    if (result == CUDA_SUCCESS) {
        function = "cuStreamSynchronize";
        result = cuda->api.cuStreamSynchronize(NULL);
    }
    bhi_host_cuda_leave(cuda, device);
    return result == CUDA_SUCCESS ? BH_OK
                                  : bhi_host_cuda_fail(cuda, result, function, call, detail);
}

static bh_status write_device(struct bh_buffer *buffer, uint64_t offset, uint64_t address,
                              uint64_t size, int from, uint64_t deadline_ns, const char *call,
                              bh_detail *detail) {
    struct bh_cuda_view *view;
    BHI_TRY(create(buffer, true, deadline_ns, &view, call, detail));
    bh_status status = BH_OK;
    CUdevice source;
    if (view->cuda->api.cuDeviceGet(&source, from) != CUDA_SUCCESS || source != view->device) {
        status = BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "address", .value = (uint64_t)from,
                          .text = BHI_SAY("is on CUDA's device %d, and the buffer on another GPU: "
                                          "copy through a buffer in host memory",
                                          from));
    } else {
        status = copy(view->cuda, view->device, address, view->address + offset, NULL, size, call,
                      detail);
    }
    bh_cuda_view_release(view);
    return status;
}

BH_API bh_status bh_buffer_write_cuda(bh_buffer *buffer, uint64_t offset, uint64_t address,
                                      uint64_t size, uint64_t timeout_ns, bh_detail *detail) {
    static const char call[] = "bh_buffer_write_cuda";
    const uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    const struct bhi_host_cuda *cuda;
    CUdevice device;
    int from = -1;
    BHI_NEED_LIVE(buffer, call, detail);
    if (offset > buffer->size || size > buffer->size - offset) {
        return BHI_FAIL(detail, call, BH_REASON_PAST_END, "size", .value = offset,
                        .limit = buffer->size, .text = "buffer");
    }
    BHI_TRY(bhi_context_check_fork(buffer->context, call, detail));
    BHI_TRY(bhi_host_cuda_load(&cuda, call, detail));
    if (size && (cuda->host.cuPointerGetAttribute(&from, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                  address) != CUDA_SUCCESS ||
                 cuda->api.cuDeviceGet(&device, from) != CUDA_SUCCESS)) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "address",
                        .text = "is no memory of a CUDA device");
    }
    if (buffer->device && size) {
        return write_device(buffer, offset, address, size, from, deadline_ns, call, detail);
    }
    BHI_TRY(bhi_buffer_acquire(buffer, size == buffer->size ? BHI_HOST_DISCARD : BHI_HOST_WRITE,
                               deadline_ns, call, detail));
    return size ? copy(cuda, device, address, 0, (char *)buffer->pointer + offset, size, call,
                       detail)
                : BH_OK;
}
