/* Contexts. The one that a thread has made last is current there. */
#include "fake_cuda.h"

#include <stdlib.h>

static struct fake_link contexts;
static _Thread_local __attribute__((tls_model("initial-exec"))) CUcontext current;

CUcontext fake_context_current(void) {
    return current && fake_has(&contexts, current) ? current : NULL;
}

static void free_list(struct fake_link *list) {
    while (list->next) {
        void *entry = list->next;
        fake_remove(list, entry);
        free(entry);
    }
}

static void destroy(CUcontext context) {
    if (context->started) {
        fake_engine_stop(context);
    }
    while (context->modules.next) {
        fake_module_free(context, (CUmodule)(void *)context->modules.next);
    }
    free_list(&context->streams);
    free_list(&context->events);
    free_list(&context->registrations);
    pthread_cond_destroy(&context->work);
    pthread_cond_destroy(&context->done);
    free(context->shared);
    free(context);
}

CUresult fake_cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device) {
    CUresult result = fake_enter_driver();
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    if (!out || (flags & ~0xffu)) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    if (!fake_is_device(device) || fake_setting("FAKE_CUDA_MODE", 0) == 2 /* prohibited */) {
        return fake_leave(CUDA_ERROR_INVALID_DEVICE);
    }
    CUcontext context = calloc(1, sizeof *context);
    if (!context || !(context->shared = malloc(FAKE_CUDA_SHARED_OPTIN))) {
        free(context);
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    pthread_cond_init(&context->work, NULL);
    pthread_cond_init(&context->done, NULL);
    result = fake_engine_start(context);
    if (result != CUDA_SUCCESS) {
        destroy(context);
        return fake_leave(result);
    }
    fake_add(&contexts, context);
    *out = current = context;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuCtxDestroy(CUcontext context) {
    CUresult result = fake_enter_driver();
    if (result == CUDA_SUCCESS && !fake_has(&contexts, context)) {
        result = context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        fake_remove(&contexts, context);
        destroy(context);
    }
    return fake_leave(result);
}

CUresult fake_cuCtxSetLimit(int limit, size_t value) {
    (void)value; /* kernels have the stack of their thread */
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS &&
        (limit < CU_LIMIT_STACK_SIZE || limit > CU_LIMIT_MALLOC_HEAP_SIZE)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return fake_leave(result);
}

CUresult fake_cuCtxSynchronize(void) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    return fake_leave(result == CUDA_SUCCESS ? fake_context_wait(context) : result);
}
