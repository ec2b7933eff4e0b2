/* Memory of the host that was registered: the device has it at the same address, with the access that
 * the process has. */
#include "fake_cuda.h"

#include <stdlib.h>

struct registration {
    struct fake_link link;
    uintptr_t at;
    size_t bytes;
};

static struct registration *find(CUcontext context, uintptr_t at, size_t bytes) {
    for (struct fake_link *link = context->registrations.next; link; link = link->next) {
        struct registration *registration = (struct registration *)(void *)link;
        if (at < registration->at + registration->bytes && registration->at < at + bytes) {
            return registration;
        }
    }
    return NULL;
}

bool fake_is_registered(CUcontext context, const void *at, size_t bytes) {
    const struct registration *found = find(context, (uintptr_t)at, bytes);
    return found && (uintptr_t)at >= found->at && (uintptr_t)at + bytes <= found->at + found->bytes;
}

CUresult fake_cuMemHostRegister(void *pointer, size_t bytes, unsigned flags) {
    enum { PORTABLE = 1, IO_MEMORY = 4 };
    const bool read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY;
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    if (!pointer || bytes == 0 || (uintptr_t)pointer + bytes < (uintptr_t)pointer ||
        (flags & ~(PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY))) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    if (read_only && !fake_setting("FAKE_CUDA_READ_ONLY", 1)) {
        return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
    }
    if (find(context, (uintptr_t)pointer, bytes)) {
        return fake_leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    /* As a driver pins pages, to write to them unless told otherwise. */
    if (!fake_may_access(pointer, bytes, !read_only)) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    struct registration *registration = malloc(sizeof *registration);
    if (!registration) {
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *registration = (struct registration){.at = (uintptr_t)pointer, .bytes = bytes};
    fake_add(&context->registrations, registration);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuMemHostUnregister(void *pointer) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    struct registration *found = find(context, (uintptr_t)pointer, 1);
    if (!pointer) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (!found || found->at != (uintptr_t)pointer) {
        result = (CUresult)FAKE_ERROR_HOST_MEMORY_NOT_REGISTERED;
    } else {
        fake_remove(&context->registrations, found);
        free(found);
    }
    return fake_leave(result);
}

CUresult fake_cuMemHostGetDevicePointer(CUdeviceptr *out, void *pointer, unsigned flags) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && (!out || flags != 0 || !find(context, (uintptr_t)pointer, 1))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *out = (uintptr_t)pointer;
    }
    return fake_leave(result);
}
