/* Contexts. The one that a thread has made last is current there. */
#include "fake_cuda.h"

#include <stdlib.h>

static struct fake_link contexts;
static _Thread_local __attribute__((tls_model("initial-exec"))) CUcontext current;

CUcontext fake_context_current(void) {
    return fake_has(&contexts, current) ? current : NULL;
}

static void free_context(CUcontext context) {
    while (context->modules.next) {
        fake_module_free(context, (CUmodule)(void *)context->modules.next);
    }
    fake_free_list(&context->streams);
    fake_free_list(&context->events);
    fake_free_list(&context->registrations);
    fake_code_fini(&context->code);
    pthread_cond_destroy(&context->work);
    pthread_cond_destroy(&context->done);
    free(context);
    if (!contexts.next) {
        fake_memory_forget();
    }
}

/* In exclusive-process mode (3) one process, whose end nobody notices; in prohibited mode (2) none. */
static bool lets_in(void) {
    uint32_t nobody = 0;
    switch (fake_setting("FAKE_CUDA_MODE", 0)) {
    case 2:
        return false;
    case 3:
        return !fake_latches ||
               __atomic_compare_exchange_n(&fake_latches[FAKE_CUDA_LATCHES - 1], &nobody, 1, false,
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    default:
        return true;
    }
}

/* Lock held. */
static CUresult make(CUcontext *out) {
    FAKE_REQUIRE(lets_in(), DEVICE_UNAVAILABLE);
    CUcontext context = calloc(1, sizeof *context);
    FAKE_REQUIRE(context, OUT_OF_MEMORY);
    pthread_cond_init(&context->work, NULL);
    pthread_cond_init(&context->done, NULL);
    CUresult result = fake_memory_prepare();
    if (result != CUDA_SUCCESS || (result = fake_code_init(&context->code)) != CUDA_SUCCESS ||
        (result = fake_engine_start(context)) != CUDA_SUCCESS) {
        free_context(context);
        return result;
    }
    fake_add(&contexts, context);
    *out = context;
    return CUDA_SUCCESS;
}

/* Lock held. */
static void end(CUcontext context) {
    fake_remove(&contexts, context);
    fake_engine_stop(context);
    free_context(context);
}

CUresult fake_cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device) {
    enum { KNOWN_FLAGS = 0xff };
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(out && (flags & ~(unsigned)KNOWN_FLAGS) == 0, INVALID_VALUE);
    FAKE_REQUIRE(fake_is_device(device), INVALID_DEVICE);
    FAKE_CHECK(make(&current));
    *out = current;
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxDestroy(CUcontext context) {
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(context, INVALID_VALUE);
    FAKE_REQUIRE(fake_has(&contexts, context), INVALID_CONTEXT);
    end(context);
    return CUDA_SUCCESS;
}

/* -- primary contexts, which all of a process share ---------------------------------------------- */

#define STACK 16 /* contexts that are current again later */

static struct {
    CUcontext context;
    unsigned uses;
} primaries[16];

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    CUcontext below[STACK];
    size_t depth;
} stack;

CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(out, INVALID_VALUE);
    FAKE_REQUIRE(fake_is_device(device) && (size_t)device < sizeof primaries / sizeof primaries[0],
                 INVALID_DEVICE);
    if (primaries[device].uses == 0) {
        FAKE_CHECK(make(&primaries[device].context));
    }
    primaries[device].uses++;
    *out = primaries[device].context;
    return CUDA_SUCCESS;
}

CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device) {
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(fake_is_device(device) && (size_t)device < sizeof primaries / sizeof primaries[0],
                 INVALID_DEVICE);
    FAKE_REQUIRE(primaries[device].uses > 0, INVALID_CONTEXT);
    if (--primaries[device].uses == 0) {
        end(primaries[device].context);
    }
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxPushCurrent(CUcontext context) {
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(fake_has(&contexts, context), INVALID_CONTEXT);
    FAKE_REQUIRE(stack.depth < STACK, OUT_OF_MEMORY);
    stack.below[stack.depth++] = current;
    current = context;
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxPopCurrent(CUcontext *out) {
    FAKE_ENTER_DRIVER();
    FAKE_REQUIRE(stack.depth > 0, INVALID_CONTEXT);
    if (out) {
        *out = current;
    }
    current = stack.below[--stack.depth];
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxSetLimit(int limit, size_t value) {
    (void)value; /* kernels have the stack of their thread */
    FAKE_ENTER(context);
    FAKE_REQUIRE(limit >= CU_LIMIT_STACK_SIZE && limit <= CU_LIMIT_MALLOC_HEAP_SIZE, INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxSynchronize(void) {
    FAKE_ENTER(context);
    return fake_context_wait(context);
}
