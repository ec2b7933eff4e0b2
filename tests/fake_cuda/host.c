/* Memory of the host that was registered: the device has it at the same address, with the access that
 * the process has. */
#include "fake_cuda.h"

#include <stdlib.h>

struct registration {
    struct fake_link link;
    uintptr_t at;
    size_t bytes;
};

static struct registration *find(CUcontext context, const void *pointer, size_t bytes) {
    const uintptr_t at = (uintptr_t)pointer;
    for (struct fake_link *link = context->registrations.next; link; link = link->next) {
        struct registration *registration = (struct registration *)(void *)link;
        if (at < registration->at + registration->bytes && registration->at < at + bytes) {
            return registration;
        }
    }
    return NULL;
}

bool fake_is_registered(CUcontext context, const void *at, size_t bytes) {
    const struct registration *found = find(context, at, bytes);
    return found && (uintptr_t)at >= found->at && (uintptr_t)at + bytes <= found->at + found->bytes;
}

CUresult fake_cuMemHostRegister(void *pointer, size_t bytes, unsigned flags) {
    enum {
        PORTABLE = 1,
        KNOWN = PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY
    };
    const bool read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY;
    struct registration *registration;
    FAKE_ENTER(context);
    FAKE_REQUIRE(pointer && bytes > 0 && (uintptr_t)pointer + bytes > (uintptr_t)pointer &&
                     (flags & ~(unsigned)KNOWN) == 0,
                 INVALID_VALUE);
    FAKE_REQUIRE(!read_only || fake_setting("FAKE_CUDA_READ_ONLY", 1), NOT_SUPPORTED);
    FAKE_REQUIRE(!find(context, pointer, bytes), HOST_MEMORY_ALREADY_REGISTERED);
    /* As a driver pins pages: to write to them, unless told otherwise. */
    FAKE_REQUIRE(fake_may_access(pointer, bytes, !read_only), INVALID_VALUE);
    FAKE_REQUIRE(registration = calloc(1, sizeof *registration), OUT_OF_MEMORY);
    registration->at = (uintptr_t)pointer;
    registration->bytes = bytes;
    fake_add(&context->registrations, registration);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemHostUnregister(void *pointer) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(pointer, INVALID_VALUE);
    struct registration *found = find(context, pointer, 1);
    FAKE_REQUIRE(found && found->at == (uintptr_t)pointer, HOST_MEMORY_NOT_REGISTERED);
    fake_remove(&context->registrations, found);
    free(found);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemHostGetDevicePointer(CUdeviceptr *out, void *pointer, unsigned flags) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(out && flags == 0 && find(context, pointer, 1), INVALID_VALUE);
    *out = (uintptr_t)pointer;
    return CUDA_SUCCESS;
}
