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
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && (!out || flags > CU_STREAM_NON_BLOCKING)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && !(*out = calloc(1, sizeof **out))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        fake_add(&context->streams, *out);
    }
    return fake_leave(result);
}

CUresult fake_cuStreamDestroy(CUstream stream) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && !fake_has(&context->streams, stream)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS) {
        fake_remove(&context->streams, stream);
        stream->destroyed = true;
        if (stream->pending == 0) {
            free(stream);
        }
    }
    return fake_leave(result);
}

CUresult fake_cuStreamQuery(CUstream stream) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS) {
        stream = fake_stream(context, stream);
        result = !stream            ? CUDA_ERROR_INVALID_HANDLE
                 : !stream->pending ? CUDA_SUCCESS
                                    : CUDA_ERROR_NOT_READY;
    }
    return fake_leave(result);
}

CUresult fake_cuStreamSynchronize(CUstream stream) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && !(stream = fake_stream(context, stream))) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    while (result == CUDA_SUCCESS && stream->pending > 0) {
        pthread_cond_wait(&context->done, &fake_lock);
        result = context->error;
    }
    return fake_leave(result);
}

CUresult fake_cuEventCreate(CUevent *out, unsigned flags) {
    enum { BLOCKING = 1, NO_TIMES = 2, INTERPROCESS = 4 };
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && (!out || flags > (BLOCKING | NO_TIMES | INTERPROCESS))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && !(*out = calloc(1, sizeof **out))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        (*out)->timed = !(flags & NO_TIMES);
        fake_add(&context->events, *out);
    }
    return fake_leave(result);
}

CUresult fake_cuEventDestroy(CUevent event) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && !fake_has(&context->events, event)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS) {
        fake_remove(&context->events, event);
        event->destroyed = true;
        if (event->pending == 0) {
            free(event);
        }
    }
    return fake_leave(result);
}

CUresult fake_cuEventRecord(CUevent event, CUstream stream) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS &&
        (!fake_has(&context->events, event) || !(stream = fake_stream(context, stream)))) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    struct fake_operation *operation = NULL;
    if (result == CUDA_SUCCESS && !(operation = fake_operation_create(NULL, 0))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        operation->event = event;
        fake_operation_submit(context, stream, operation);
    }
    return fake_leave(result);
}

CUresult fake_cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    if (!ms) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    if (!fake_has(&context->events, start) || !fake_has(&context->events, end) || !start->timed ||
        !end->timed || !start->recorded || !end->recorded) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    if (start->pending > 0 || end->pending > 0) {
        return fake_leave(CUDA_ERROR_NOT_READY);
    }
    *ms = (float)((double)(int64_t)(end->at_ns - start->at_ns) / 1e6);
    return fake_leave(CUDA_SUCCESS);
}
