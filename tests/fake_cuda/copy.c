/* Copies, fills and words written, in a stream's order. */
#include "fake_cuda.h"

#include <stdlib.h>

static void run_copy(struct fake_operation *operation) {
    fake_move(operation->to, operation->from, operation->bytes);
}

static void run_fill_bytes(struct fake_operation *operation) {
    const unsigned char value = (unsigned char)operation->value;
    for (size_t i = 0; i < operation->bytes; i++) {
        fake_move((unsigned char *)operation->to + i, &value, 1);
    }
}

static void run_fill_words(struct fake_operation *operation) {
    for (size_t i = 0; i < operation->bytes; i++) {
        fake_move((uint32_t *)operation->to + i, &operation->value, sizeof operation->value);
    }
}

static void run_write(struct fake_operation *operation) {
    uint32_t *word = operation->to;
    if (!fake_may_access(word, sizeof *word, true)) {
        fake_guard_fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    /* After all that came before it in the stream. */
    __atomic_store_n(word, operation->value, __ATOMIC_RELEASE);
}

/* Is it NULL, or in need of memory? */
static CUresult prepare(CUstream *stream, CUcontext *context, fake_run *run, size_t staged,
                        struct fake_operation **out) {
    CUresult result = fake_enter(context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (!(*stream = fake_stream(*context, *stream))) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = fake_operation_create(run, staged);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

enum host { NONE, SOURCE, TARGET }; /* which of the two is the host's */

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream,
                     enum host host) {
    CUcontext context = NULL;
    struct fake_operation *operation;
    const void *const host_at = (const void *)(uintptr_t)(host == SOURCE ? from : to);
    CUresult result = fake_enter(&context);
    const bool pageable =
        result == CUDA_SUCCESS && host != NONE && !fake_is_registered(context, host_at, bytes);
    fake_leave(result);
    result =
        prepare(&stream, &context, run_copy, pageable && host == SOURCE ? bytes : 0, &operation);
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    if (bytes > 0 && (!to || !from)) {
        free(operation);
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    operation->to = (void *)(uintptr_t)to;
    operation->from = (const void *)(uintptr_t)from;
    operation->bytes = bytes;
    if (pageable && host == SOURCE) {
        /* It is the caller's again when this returns. */
        for (size_t i = 0; i < bytes; i++) {
            operation->staged[i] = ((const unsigned char *)host_at)[i];
        }
        operation->from = operation->staged;
    }
    const bool waits = operation->waited = pageable && host == TARGET;
    fake_operation_submit(context, stream, operation);
    if (waits) {
        while (!operation->done) {
            pthread_cond_wait(&context->done, &fake_lock);
        }
        free(operation);
        result = context->error;
    }
    return fake_leave(result);
}

CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(to, from, bytes, stream, NONE);
}

CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return copy(to, (uintptr_t)from, bytes, stream, SOURCE);
}

CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy((uintptr_t)to, from, bytes, stream, TARGET);
}

static CUresult fill(CUdeviceptr to, uint32_t value, size_t count, CUstream stream, fake_run *run,
                     size_t alignment) {
    CUcontext context;
    struct fake_operation *operation;
    CUresult result = prepare(&stream, &context, run, 0, &operation);
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    if ((count > 0 && !to) || to % alignment != 0) {
        free(operation);
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    operation->to = (void *)(uintptr_t)to;
    operation->value = value;
    operation->bytes = count;
    fake_operation_submit(context, stream, operation);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill(to, value, count, stream, run_fill_bytes, 1);
}

CUresult fake_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return fill(to, value, count, stream, run_fill_words, sizeof value);
}

CUresult fake_cuStreamWriteValue32(CUstream stream, CUdeviceptr address, uint32_t value,
                                   unsigned flags) {
    enum { NO_BARRIER = 1 };
    return flags > NO_BARRIER ? CUDA_ERROR_INVALID_VALUE
                              : fill(address, value, 1, stream, run_write, sizeof value);
}
