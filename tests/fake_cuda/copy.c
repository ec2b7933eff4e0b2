/* Copies, fills and words written, in a stream's order. */
#include "fake_cuda.h"

#include <stdlib.h>
#include <string.h>

static void run_copy(struct fake_operation *operation) {
    fake_move(operation->to, operation->from, operation->bytes);
}

/* The word again and again: of a fill with bytes it has four of them. */
static void run_fill(struct fake_operation *operation) {
    uint64_t pattern[512];
    unsigned char *to = operation->to;
    for (size_t i = 0; i < sizeof pattern / sizeof pattern[0]; i++) {
        pattern[i] = operation->value << 32 | operation->value;
    }
    for (size_t left = operation->bytes, n; left > 0; left -= n, to += n) {
        n = left < sizeof pattern ? left : sizeof pattern;
        fake_move(to, pattern, n);
    }
}

static void run_write(struct fake_operation *operation) {
    uint64_t *word = operation->to;
    if (!fake_may_access(word, sizeof *word, true)) {
        fake_guard_fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    /* After all that came before it in the stream. */
    __atomic_store_n(word, operation->value, __ATOMIC_RELEASE);
}

enum host { NONE, SOURCE, TARGET }; /* which of the two is the host's */

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream,
                     enum host host) {
    FAKE_ENTER(context);
    const void *const host_at = (const void *)(uintptr_t)(host == SOURCE ? from : to);
    const bool pageable = host != NONE && !fake_is_registered(context, host_at, bytes);
    struct fake_operation *operation;
    FAKE_REQUIRE(stream = fake_stream(context, stream), INVALID_HANDLE);
    FAKE_REQUIRE((to && from) || bytes == 0, INVALID_VALUE);
    operation = fake_operation_create(run_copy, pageable && host == SOURCE ? bytes : 0);
    FAKE_REQUIRE(operation, OUT_OF_MEMORY);
    operation->to = (void *)(uintptr_t)to;
    operation->from = (const void *)(uintptr_t)from;
    operation->bytes = bytes;
    if (pageable && host == SOURCE && bytes > 0) {
        /* It is the caller's again when this returns. */
        memcpy(operation->staged, host_at, bytes);
        operation->from = operation->staged;
    }
    operation->waited = pageable && host == TARGET;
    const bool waits = operation->waited;
    fake_operation_submit(context, stream, operation);
    if (!waits) {
        return CUDA_SUCCESS;
    }
    while (!operation->done) {
        pthread_cond_wait(&context->done, &fake_lock);
    }
    free(operation);
    return context->error;
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

static CUresult fill(CUdeviceptr to, uint64_t value, size_t bytes, CUstream stream, fake_run *run,
                     size_t alignment) {
    struct fake_operation *operation;
    FAKE_ENTER(context);
    FAKE_REQUIRE(stream = fake_stream(context, stream), INVALID_HANDLE);
    FAKE_REQUIRE((to || bytes == 0) && to % alignment == 0, INVALID_VALUE);
    FAKE_REQUIRE(operation = fake_operation_create(run, 0), OUT_OF_MEMORY);
    operation->to = (void *)(uintptr_t)to;
    operation->value = value;
    operation->bytes = bytes;
    fake_operation_submit(context, stream, operation);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill(to, value * 0x01010101u, count, stream, run_fill, 1);
}

CUresult fake_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    FAKE_REQUIRE(count <= SIZE_MAX / sizeof value, INVALID_VALUE);
    return fill(to, value, count * sizeof value, stream, run_fill, sizeof value);
}

CUresult fake_cuStreamWriteValue64(CUstream stream, CUdeviceptr address, uint64_t value,
                                   unsigned flags) {
    enum { NO_BARRIER = 1 };
    FAKE_REQUIRE(flags <= NO_BARRIER, INVALID_VALUE);
    return fill(address, value, sizeof value, stream, run_write, sizeof value);
}
