/* An upload beside a kernel that takes about as long: through the library, on one stream, and
 * in-process, with a queue for each. Prints a line for each part, the better of several rounds. */
#include "saxpy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES         BENCH_SAXPY_BYTES
#define PIECE         (4ull << 20) /* in-process: of two staging buffers */
#define PIECES        (BYTES / PIECE)
#define ROUNDS        10u
#define MOST_LAUNCHES 2048u
#define FLOATS        (BYTES / sizeof(float))

static const struct bench_saxpy_push PUSH = {.a = 0.5f, .count = (uint32_t)(FLOATS / 4)};

/* What is measured. */
enum part { KERNEL, UPLOAD, IN_TURN, AT_ONCE, PARTS };
static const char *const NAMES[PARTS] = {"kernel", "upload", "one after the other", "at once"};

/* -- the library ------------------------------------------------------------------------------ */

struct ours {
    struct bench_saxpy_ours saxpy;
    bh_buffer *x, *y, *from, *to;
    bh_binding bindings[2];
    bh_command *commands;
};

static void open_ours(struct ours *side, const char *worker, uint32_t launches, uint8_t value) {
    bench_saxpy_open_ours(&side->saxpy, worker);
    bh_context *context = side->saxpy.context;
    bh_stream *stream = side->saxpy.stream;
    side->x = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    side->y = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    side->to = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    side->from = bench_buffer(context, stream, BH_MEMORY_HOST, BYTES);
    memset(bench_map(side->from, BH_MAP_DISCARD), value, BYTES);
    side->commands = bench_allocate(launches, sizeof *side->commands);
    bench_saxpy_launches(&side->saxpy, side->x, side->y, &PUSH, side->bindings, side->commands,
                         launches);
}

static bh_event *start_ours(const struct ours *side, const bh_command *commands, uint32_t count) {
    return bench_submit(side->saxpy.stream,
                        BENCH_WITH(bh_submit_info, .commands = commands, .command_count = count));
}

static uint64_t run_ours(const struct ours *side, enum part part, uint32_t launches) {
    const bh_command copy = {.type = BH_COMMAND_COPY,
                             .copy = {.src = side->from, .dst = side->to, .size = BH_WHOLE_SIZE}};
    const uint64_t start = bench_now_ns();
    bh_event *kernel = part == UPLOAD ? NULL : start_ours(side, side->commands, launches);
    if (part == IN_TURN) {
        bench_finish(kernel);
        kernel = NULL;
    }
    if (part != KERNEL) {
        bench_finish(start_ours(side, &copy, 1));
    }
    if (kernel) {
        bench_finish(kernel);
    }
    return bench_now_ns() - start;
}

static void check_ours(const struct ours *side, uint8_t value) {
    uint8_t *bytes = bench_allocate(1, BYTES);
    BENCH_MUST(bh_buffer_read(side->to, 0, bytes, BYTES, BENCH_TIMEOUT_NS, &bench_why));
    for (uint64_t i = 0; i < BYTES; i++) {
        if (bytes[i] != value) {
            bench_die("byte %llu of what was uploaded is %u", (unsigned long long)i, bytes[i]);
        }
    }
    free(bytes);
}

static void close_ours(struct ours *side) {
    free(side->commands);
    bh_buffer_release(side->x);
    bh_buffer_release(side->y);
    bh_buffer_release(side->from);
    bh_buffer_release(side->to);
    bench_saxpy_close_ours(&side->saxpy);
}

/* -- in-process ------------------------------------------------------------------------------- */

struct theirs {
    struct bench_device device;
    VkQueue copy_queue; /* the compute queue if there is no other one */
    struct bench_saxpy_theirs saxpy;
    VkCommandBuffer kernel, copies[2];
    VkFence kernel_done, copied[2];
    struct bench_memory to, staging[2];
    uint8_t *from;
};

static void open_theirs(struct theirs *side, uint8_t value) {
    static const uint8_t any[16];
    struct bench_machine machine;
    bench_device_open(&side->device, any, true, &machine);
    const bool apart = side->device.copy_queue != VK_NULL_HANDLE;
    printf("device: %s%s\n", machine.device,
           apart ? "" : "; it has no queue for transfers alone, so nothing runs at once");
    side->copy_queue = apart ? side->device.copy_queue : side->device.queue;
    bench_saxpy_open_theirs(&side->saxpy, &side->device);
    bench_memory_make(&side->device, BYTES, true, &side->to);
    const VkCommandPoolCreateFlags reset = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    side->kernel = bench_commands_make(&side->device,
                                       bench_pool_make(&side->device, side->device.family, reset));
    side->kernel_done = bench_fence_make(&side->device);
    const VkCommandPool copies = bench_pool_make(
        &side->device, apart ? side->device.copy_family : side->device.family, reset);
    for (uint32_t i = 0; i < 2; i++) {
        bench_memory_make(&side->device, PIECE, false, &side->staging[i]);
        side->copies[i] = bench_commands_make(&side->device, copies);
        side->copied[i] = bench_fence_make(&side->device);
    }
    side->from = bench_allocate(1, BYTES);
    memset(side->from, value, BYTES);
}

/* Two pieces are under way, as a careful host would have it. */
static void upload(struct theirs *side) {
    for (uint64_t i = 0; i < PIECES + 2; i++) {
        const int slot = (int)(i % 2);
        if (i >= 2) {
            bench_fence_finish(&side->device, side->copied[slot]);
        }
        if (i < PIECES) {
            const VkBufferCopy region = {0, i * PIECE, PIECE};
            memcpy(side->staging[slot].mapped, side->from + i * PIECE, PIECE);
            bench_commands_begin(side->copies[slot], 0);
            vkCmdCopyBuffer(side->copies[slot], side->staging[slot].buffer, side->to.buffer, 1,
                            &region);
            BENCH_VK(vkEndCommandBuffer(side->copies[slot]));
            bench_commands_submit(side->copy_queue, side->copies[slot], side->copied[slot]);
        }
    }
}

static uint64_t run_theirs(struct theirs *side, enum part part) {
    const uint64_t start = bench_now_ns();
    if (part != UPLOAD) {
        bench_commands_submit(side->device.queue, side->kernel, side->kernel_done);
    }
    if (part == KERNEL || part == IN_TURN) {
        bench_fence_finish(&side->device, side->kernel_done);
    }
    if (part != KERNEL) {
        upload(side);
    }
    if (part == AT_ONCE) {
        bench_fence_finish(&side->device, side->kernel_done);
    }
    return bench_now_ns() - start;
}

/* How many launches take about as long as the upload. */
static uint32_t count_launches(struct theirs *side) {
    uint64_t kernel = UINT64_MAX, copy = UINT64_MAX;
    bench_saxpy_record(&side->saxpy, side->kernel, &PUSH, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t one = run_theirs(side, KERNEL), other = run_theirs(side, UPLOAD);
        kernel = one < kernel ? one : kernel;
        copy = other < copy ? other : copy;
    }
    const uint64_t launches = copy / (kernel ? kernel : 1) + 1;
    return launches < MOST_LAUNCHES ? (uint32_t)launches : MOST_LAUNCHES;
}

/* -- both ------------------------------------------------------------------------------------- */

static uint64_t shorter(const uint64_t times[PARTS]) {
    return times[KERNEL] < times[UPLOAD] ? times[KERNEL] : times[UPLOAD];
}

/* How much of the shorter one was beside the longer one. */
static double overlap(const uint64_t times[PARTS]) {
    return ((double)times[IN_TURN] - (double)times[AT_ONCE]) / (double)shorter(times);
}

static const char usage[] =
    "Usage: bench-overlap [WORKER]\n"
    "An upload of 64 MiB beside a kernel that takes as long, through the library and in-process.\n"
    "WORKER: the worker's executable.\n";

int main(int argc, char **argv) {
    bench_help(argc, argv, usage);
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        bench_bad_usage(argv[1], usage);
    }
    static struct theirs theirs;
    struct ours ours = {0};
    uint64_t us[PARTS], them[PARTS];
    open_theirs(&theirs, 7);
    const uint32_t launches = count_launches(&theirs);
    bench_saxpy_record(&theirs.saxpy, theirs.kernel, &PUSH, launches); /* once */
    open_ours(&ours, argc > 1 ? argv[1] : NULL, launches, 7);
    (void)run_ours(&ours, IN_TURN, launches); /* which compiles, makes and imports */
    for (int part = 0; part < PARTS; part++) {
        us[part] = them[part] = UINT64_MAX;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (int part = 0; part < PARTS; part++) {
            const uint64_t our = run_ours(&ours, (enum part)part, launches);
            const uint64_t their = run_theirs(&theirs, (enum part)part);
            us[part] = our < us[part] ? our : us[part];
            them[part] = their < them[part] ? their : them[part];
        }
    }
    check_ours(&ours, 7);
    bench_saxpy_say_head();
    for (int part = 0; part < PARTS; part++) {
        bench_saxpy_say(NAMES[part], us[part], them[part]);
    }
    printf("%-34s %10.2f    %10.2f\n", "share of the shorter that overlaps", overlap(us),
           overlap(them));
    close_ours(&ours);
    return 0;
}
