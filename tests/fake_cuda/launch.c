/* Launches: checking one, and running its grid. */
#include "fake_cuda.h"

#include <string.h>
#include <time.h>

/* Whose kernel this thread runs. */
static _Thread_local __attribute__((tls_model("initial-exec"))) CUcontext running;

static void pause_kernel(void) {
    /* So short that nobody waits for it, and the processor has something else to do. */
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    if (running->abandoned) {
        fake_guard_fail(CUDA_ERROR_LAUNCH_FAILED);
    }
}

static bool next(struct fake_cuda_dim *at, const struct fake_cuda_dim *size) {
    if (++at->x < size->x) {
        return true;
    }
    at->x = 0;
    if (++at->y < size->y) {
        return true;
    }
    at->y = 0;
    return ++at->z < size->z;
}

static void run_launch(struct fake_operation *operation) {
    CUcontext context = running = operation->context;
    struct fake_cuda_thread thread = {.blockDim = operation->block,
                                      .gridDim = operation->grid,
                                      .shared = context->shared,
                                      .shared_bytes = operation->shared_bytes,
                                      .fail = fake_guard_fail,
                                      .pause = pause_kernel};
    fake_cuda_kernel *kernel = operation->function->run;
    do {
        memset(context->shared, 0xb5, operation->shared_bytes);
        thread.threadIdx = (struct fake_cuda_dim){0};
        do {
            if (context->abandoned) {
                return;
            }
            kernel(&thread, operation->staged);
        } while (next(&thread.threadIdx, &thread.blockDim));
    } while (next(&thread.blockIdx, &thread.gridDim));
}

enum { EXTRA_END, EXTRA_POINTER, EXTRA_SIZE };

/* The parameters as |extra| has them: one buffer. NULL: that is not one, or too small. */
static const void *find_buffer(CUfunction function, void **extra) {
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; (uintptr_t)extra[0] != EXTRA_END; extra += 2) {
        if ((uintptr_t)extra[0] == EXTRA_POINTER) {
            buffer = extra[1];
        } else if ((uintptr_t)extra[0] == EXTRA_SIZE && extra[1]) {
            bytes = *(const size_t *)extra[1];
        } else {
            return NULL;
        }
    }
    return bytes >= function->parameter_bytes ? buffer : NULL;
}

static CUresult check_size(CUfunction function, struct fake_cuda_dim grid,
                           struct fake_cuda_dim block, uint32_t shared_bytes) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0 ||
        grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535 || block.x > 1024 ||
        block.y > 1024 || block.z > 64) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return (uint64_t)block.x * block.y * block.z > function->attributes.max_threads ||
                   shared_bytes > function->attributes.max_dynamic_shared
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, CUstream stream, void **parameters,
                             void **extra) {
    const struct fake_cuda_dim grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    const void *buffer = NULL;
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS &&
        (!fake_function(context, function) || !(stream = fake_stream(context, stream)))) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS) {
        result = check_size(function, grid, block, shared_bytes);
    }
    if (result == CUDA_SUCCESS && function->parameter_count > 0 &&
        (!parameters == !extra || (extra && !(buffer = find_buffer(function, extra))))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    struct fake_operation *operation = NULL;
    if (result == CUDA_SUCCESS &&
        !(operation = fake_operation_create(run_launch, function->parameter_bytes))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    operation->function = function;
    operation->grid = grid;
    operation->block = block;
    operation->shared_bytes = function->attributes.static_shared + shared_bytes;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const struct fake_cuda_parameter *at = &function->parameters[i];
        memcpy(operation->staged + at->offset,
               buffer ? (const unsigned char *)buffer + at->offset : parameters[i], at->size);
    }
    fake_operation_submit(context, stream, operation);
    return fake_leave(CUDA_SUCCESS);
}
