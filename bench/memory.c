/* Device memory: a kernel on buffers there, and copies between them and the host, through the
 * library and in-process. Prints a line for each, the better of several rounds. */
#include "saxpy.h"
#include "staged.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES    BENCH_SAXPY_BYTES
#define LAUNCHES 20u
#define ROUNDS   10u
#define FLOATS   (BYTES / sizeof(float))

static const struct bench_saxpy_push PUSH = {.a = 3.0f, .count = (uint32_t)(FLOATS / 4)};

static uint64_t better(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* -- the library ------------------------------------------------------------------------------ */

struct ours {
    struct bench_saxpy_ours saxpy;
    bh_buffer *x, *y;
};

static bh_buffer *make_buffer(const struct ours *side, uint64_t memory) {
    return bench_buffer(side->saxpy.context, side->saxpy.stream, memory, BYTES);
}

/* One launch, of several in a submission. */
static uint64_t kernel_ours(const struct ours *side) {
    bh_binding bindings[2];
    bh_command commands[LAUNCHES];
    bench_saxpy_launches(&side->saxpy, side->x, side->y, &PUSH, bindings, commands, LAUNCHES);
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t start = bench_now_ns();
        bh_event *event =
            bench_submit(side->saxpy.stream, BENCH_WITH(bh_submit_info, .commands = commands,
                                                        .command_count = LAUNCHES));
        bench_await(event);
        best = better(best, bench_now_ns() - start);
        bh_event_release(event);
    }
    return best / LAUNCHES;
}

static uint64_t copy_ours(const struct ours *side, void *bytes, bool upload) {
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t start = bench_now_ns();
        BENCH_MUST(upload ? bh_buffer_write(side->x, 0, bytes, BYTES, BENCH_TIMEOUT_NS, &bench_why)
                          : bh_buffer_read(side->x, 0, bytes, BYTES, BENCH_TIMEOUT_NS, &bench_why));
        best = better(best, bench_now_ns() - start);
    }
    return best;
}

/* -- in-process ------------------------------------------------------------------------------- */

struct theirs {
    struct bench_device device;
    struct bench_saxpy_theirs saxpy;
    VkCommandBuffer commands;
    VkFence fence;
    struct bench_staged staged;
};

static void open_theirs(struct theirs *side) {
    static const uint8_t any[16];
    struct bench_machine machine;
    bench_device_open(&side->device, any, false, &machine);
    printf("device: %s\n", machine.device);
    bench_saxpy_open_theirs(&side->saxpy, &side->device);
    const VkCommandPool pool = bench_pool_make(&side->device, side->device.family,
                                               VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT);
    side->commands = bench_commands_make(&side->device, pool);
    side->fence = bench_fence_make(&side->device);
    bench_staged_open(&side->device, &side->staged);
}

static uint64_t kernel_theirs(struct theirs *side) {
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t start = bench_now_ns();
        bench_saxpy_record(&side->saxpy, side->commands, &PUSH, LAUNCHES);
        bench_commands_submit(side->device.queue, side->commands, side->fence);
        bench_fence_finish(&side->device, side->fence);
        best = better(best, bench_now_ns() - start);
    }
    return best / LAUNCHES;
}

static uint64_t copy_theirs(struct theirs *side, void *bytes, bool upload) {
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t start = bench_now_ns();
        if (upload) {
            bench_staged_upload(&side->staged, &side->saxpy.arrays[0], bytes, BYTES);
            bench_staged_finish(&side->staged);
        } else {
            bench_staged_download(&side->staged, &side->saxpy.arrays[0], bytes, BYTES);
        }
        best = better(best, bench_now_ns() - start);
    }
    return best;
}

static const char usage[] =
    "Usage: bench-memory [WORKER]\n"
    "A kernel on device memory, and copies to and from it, through the library and in-process.\n"
    "WORKER: the worker's executable.\n";

int main(int argc, char **argv) {
    bench_help(argc, argv, usage);
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        bench_bad_usage(argv[1], usage);
    }
    char *bytes = bench_allocate(1, BYTES);
    struct ours ours = {0};
    static struct theirs theirs;
    memset(bytes, 1, BYTES);
    open_theirs(&theirs);
    bench_saxpy_open_ours(&ours.saxpy, argc > 1 ? argv[1] : NULL);
    bench_saxpy_say_head();
    ours.x = make_buffer(&ours, BH_MEMORY_DEVICE);
    ours.y = make_buffer(&ours, BH_MEMORY_DEVICE);
    (void)kernel_ours(&ours); /* which compiles, makes and imports */
    (void)kernel_theirs(&theirs);
    bench_saxpy_say("saxpy kernel, device memory", kernel_ours(&ours), kernel_theirs(&theirs));
    bench_saxpy_say("upload", copy_ours(&ours, bytes, true), copy_theirs(&theirs, bytes, true));
    bench_saxpy_say("download", copy_ours(&ours, bytes, false), copy_theirs(&theirs, bytes, false));
    bh_buffer_release(ours.x);
    bh_buffer_release(ours.y);
    ours.x = make_buffer(&ours, BH_MEMORY_HOST);
    ours.y = make_buffer(&ours, BH_MEMORY_HOST);
    (void)kernel_ours(&ours);
    bench_saxpy_say("saxpy kernel, host memory", kernel_ours(&ours), kernel_theirs(&theirs));
    bh_buffer_release(ours.x);
    bh_buffer_release(ours.y);
    bench_saxpy_close_ours(&ours.saxpy);
    free(bytes);
    return 0;
}
