#include "guard_hang.h"

#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define TIMEOUT_NS (60ull * 1000 * 1000 * 1000)

static const uint32_t HANG[] =
#include "hang.inc"
    ;

struct side {
    bh_stream *stream;
    bh_kernel *kernel, *count;
    bh_buffer *data, *counter;
};

static bh_event *launch(struct side *side, bh_kernel *kernel, bh_buffer *data, uint32_t x,
                        uint32_t y, uint64_t deadline_ns) {
    const bh_binding binding = bh_bind_read_write(0, data);
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = kernel, .groups = {x, y, 1}, .bindings = &binding, .binding_count = 1}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = deadline_ns};
    bh_event *event;
    bh_detail detail;
    bench_must(bh_submit(side->stream, &info, &event, &detail), "bh_submit", &detail);
    return event;
}

static uint64_t count_once(struct side *side) {
    const uint64_t start = bench_now_ns();
    bh_event *event = launch(side, side->count, side->counter, 1, 1, BH_FOREVER);
    const bh_status status = bh_event_wait(event, TIMEOUT_NS);
    if (status != BH_OK) {
        bench_die("a good job is not READY: %s", bh_status_name(status));
    }
    bh_event_release(event);
    return bench_now_ns() - start;
}

static struct side open_side(bh_context *context, const char *device, const char *name,
                             bool trusted) {
    struct side side;
    bh_detail detail;
    bh_stream_options stream = {.struct_size = sizeof stream};
    stream.name = name;
    stream.device = device;
    bench_must(bh_stream_create(context, &stream, &side.stream, &detail), "bh_stream_create",
               &detail);
    bh_kernel_options kernel = {.struct_size = sizeof kernel};
    kernel.name = "hang";
    kernel.trusted = trusted;
    bench_must(bh_kernel_create_spirv(context, HANG, sizeof HANG, &kernel, &side.kernel, &detail),
               "bh_kernel_create_spirv", &detail);
    kernel.name = "count";
    kernel.trusted = true;
    bench_must(bh_kernel_create_spirv(context, BENCH_CODE[BENCH_COUNT].words,
                                      BENCH_CODE[BENCH_COUNT].bytes, &kernel, &side.count, &detail),
               "bh_kernel_create_spirv", &detail);
    bench_must(bh_buffer_create(context, 4096, NULL, &side.data, &detail), "bh_buffer_create",
               &detail);
    bench_must(bh_buffer_create(context, 4096, NULL, &side.counter, &detail), "bh_buffer_create",
               &detail);
    bench_must(bh_stream_wait_ready(side.stream, TIMEOUT_NS, &detail), "bh_stream_wait_ready",
               &detail);
    count_once(&side);
    return side;
}

static void close_side(struct side *side) {
    bh_buffer_release(side->data);
    bh_buffer_release(side->counter);
    bh_kernel_release(side->kernel);
    bh_kernel_release(side->count);
    bh_stream_release(side->stream);
}

struct neighbour {
    struct side side;
    atomic_bool stop;
    atomic_uint done;
    uint64_t worst_ns;
};

static void *count_on(void *argument) {
    struct neighbour *n = argument;
    while (!atomic_load(&n->stop)) {
        const uint64_t took = count_once(&n->side);
        n->worst_ns = took > n->worst_ns ? took : n->worst_ns;
        atomic_fetch_add(&n->done, 1);
    }
    return NULL;
}

struct guard_hang guard_hang_measure(const struct bench_options *options, bool trusted) {
    struct guard_hang out;
    bh_detail detail;
    bh_context_options context_options = {.struct_size = sizeof context_options};
    context_options.worker_path = options->worker;
    bh_context *context;
    bench_must(bh_context_create(&context_options, &context, &detail), "bh_context_create",
               &detail);
    struct side culprit = open_side(context, options->device, "culprit", trusted);
    struct neighbour n = {.side = open_side(context, options->device, "neighbour", trusted)};
    if (!trusted) { /* compiled before it is timed: a loop that is let go at once */
        void *word;
        bench_must(bh_buffer_map(culprit.data, BH_MAP_DISCARD, TIMEOUT_NS, &word, &detail),
                   "bh_buffer_map", &detail);
        const uint32_t go = 0x600D600Du;
        memcpy(word, &go, sizeof go);
        bh_event *event = launch(&culprit, culprit.kernel, culprit.data, 1, 1, BH_FOREVER);
        const bh_status status = bh_event_wait(event, TIMEOUT_NS);
        if (status != BH_OK) {
            bench_die("the loop that is let go: %s", bh_status_name(status));
        }
        bh_event_release(event);
        bench_must(bh_buffer_map(culprit.data, BH_MAP_DISCARD, TIMEOUT_NS, &word, &detail),
                   "bh_buffer_map", &detail);
        memset(word, 0, 4096);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, count_on, &n) != 0) {
        bench_die("cannot start a thread");
    }
    while (atomic_load(&n.done) < 20) {
    }
    const int pid = bh_stream_worker_pid(culprit.stream);
    const uint64_t start = bench_now_ns();
    bh_event *event =
        launch(&culprit, culprit.kernel, culprit.data, 2000, 1, GUARD_DEADLINE_MS * 1000000ull);
    const bh_status status = bh_event_wait(event, TIMEOUT_NS);
    const uint64_t poisoned = bench_now_ns();
    if (status != BH_DEADLINE) {
        bench_die("the endless kernel: %s", bh_status_name(status));
    }
    out.poisoned_ns = poisoned - start;
    count_once(&culprit);
    out.next_ns = bench_now_ns() - poisoned;
    out.same_worker = bh_stream_worker_pid(culprit.stream) == pid;
    const unsigned after = atomic_load(&n.done) + 20;
    while (atomic_load(&n.done) < after) { /* until what it stood in has passed */
    }
    atomic_store(&n.stop, true);
    pthread_join(thread, NULL);
    out.stall_ns = n.worst_ns;
    bh_event_release(event);
    close_side(&culprit);
    close_side(&n.side);
    bh_context_destroy(context);
    return out;
}
