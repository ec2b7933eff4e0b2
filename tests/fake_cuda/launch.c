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

static void run_later(void (*run)(void *argument), void *argument) {
    running->later = run;
    running->later_argument = argument;
    running->later_ns = fake_now_ns() + 100000000u;
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
                                      .pause = pause_kernel,
                                      .latches = fake_latches,
                                      .kept = context->kept,
                                      .skew_ns = &context->skew_ns,
                                      .later = run_later};
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

static bool fits(struct fake_cuda_dim size, struct fake_cuda_dim most) {
    return size.x > 0 && size.y > 0 && size.z > 0 && size.x <= most.x && size.y <= most.y &&
           size.z <= most.z;
}

CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, CUstream stream, void **parameters,
                             void **extra) {
    const struct fake_cuda_dim grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    const unsigned char *buffer = NULL;
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_is_function(context, function), INVALID_HANDLE);
    FAKE_REQUIRE(stream = fake_stream(context, stream), INVALID_HANDLE);
    FAKE_REQUIRE(fits(grid, (struct fake_cuda_dim){INT32_MAX, 65535, 65535}), INVALID_VALUE);
    FAKE_REQUIRE(fits(block, (struct fake_cuda_dim){1024, 1024, 64}) &&
                     block.x * block.y * block.z <= function->attributes.max_threads,
                 INVALID_VALUE);
    FAKE_REQUIRE(shared_bytes <= function->attributes.max_dynamic_shared, INVALID_VALUE);
    if (function->parameter_count > 0) {
        FAKE_REQUIRE(!parameters != !extra, INVALID_VALUE);
        FAKE_REQUIRE(parameters || (buffer = find_buffer(function, extra)), INVALID_VALUE);
    }
    struct fake_operation *operation = fake_operation_create(run_launch, function->parameter_bytes);
    FAKE_REQUIRE(operation, OUT_OF_MEMORY);
    operation->function = function;
    operation->grid = grid;
    operation->block = block;
    operation->shared_bytes = function->attributes.static_shared + shared_bytes;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const struct fake_cuda_parameter *at = &function->parameters[i];
        memcpy(operation->staged + at->offset, buffer ? buffer + at->offset : parameters[i],
               at->size);
    }
    fake_operation_submit(context, stream, operation);
    return CUDA_SUCCESS;
}
