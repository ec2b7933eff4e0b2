/* Streams and events. */
#include "fake_cuda.h"

#include <stdlib.h>

/* 0: the context's own; 1 and 2 are "legacy" and "per thread". */
CUstream fake_stream(CUcontext context, CUstream stream) {
    if ((uintptr_t)stream <= 2) {
        return &context->legacy;
    }
    return fake_has(&context->streams, stream) ? stream : NULL;
}

CUresult fake_cuStreamCreate(CUstream *out, unsigned flags) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(out && flags <= CU_STREAM_NON_BLOCKING, INVALID_VALUE);
    FAKE_REQUIRE(*out = calloc(1, sizeof **out), OUT_OF_MEMORY);
    fake_add(&context->streams, *out);
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamDestroy(CUstream stream) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_has(&context->streams, stream), INVALID_HANDLE);
    fake_remove(&context->streams, stream);
    stream->destroyed = true;
    if (stream->pending == 0) {
        free(stream);
    }
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamQuery(CUstream stream) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(stream = fake_stream(context, stream), INVALID_HANDLE);
    return stream->pending > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult fake_cuStreamSynchronize(CUstream stream) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(stream = fake_stream(context, stream), INVALID_HANDLE);
    while (context->error == CUDA_SUCCESS && stream->pending > 0) {
        pthread_cond_wait(&context->done, &fake_lock);
    }
    return context->error;
}

CUresult fake_cuEventCreate(CUevent *out, unsigned flags) {
    enum { BLOCKING = 1, NO_TIMES = 2, INTERPROCESS = 4 };
    FAKE_ENTER(context);
    FAKE_REQUIRE(out && flags <= (BLOCKING | NO_TIMES | INTERPROCESS), INVALID_VALUE);
    FAKE_REQUIRE(*out = calloc(1, sizeof **out), OUT_OF_MEMORY);
    (*out)->timed = !(flags & NO_TIMES);
    fake_add(&context->events, *out);
    return CUDA_SUCCESS;
}

CUresult fake_cuEventDestroy(CUevent event) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_has(&context->events, event), INVALID_HANDLE);
    fake_remove(&context->events, event);
    event->destroyed = true;
    if (event->pending == 0) {
        free(event);
    }
    return CUDA_SUCCESS;
}

CUresult fake_cuEventRecord(CUevent event, CUstream stream) {
    struct fake_operation *operation;
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_has(&context->events, event), INVALID_HANDLE);
    FAKE_REQUIRE(stream = fake_stream(context, stream), INVALID_HANDLE);
    FAKE_REQUIRE(operation = fake_operation_create(NULL, 0), OUT_OF_MEMORY);
    operation->event = event;
    fake_operation_submit(context, stream, operation);
    return CUDA_SUCCESS;
}

CUresult fake_cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(ms, INVALID_VALUE);
    FAKE_REQUIRE(fake_has(&context->events, start) && fake_has(&context->events, end),
                 INVALID_HANDLE);
    FAKE_REQUIRE(start->timed && end->timed && start->recorded && end->recorded, INVALID_HANDLE);
    FAKE_REQUIRE(start->pending == 0 && end->pending == 0, NOT_READY);
    *ms = (float)((double)(int64_t)(end->at_ns - start->at_ns) / 1e6);
    return CUDA_SUCCESS;
}
