/* bench-hang-neighbour: an endless kernel on one stream, short ones on another: when the host hears
 * that the first was stopped, when its stream works again, and how long the neighbour stood still.
 * bench/browser runs it beside Chromium. Usage: bench-hang-neighbour HANG DEADLINE_MS [DEVICE] */
#include "bench/bench.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>

#define BEFORE 200 /* round trips of the neighbour alone */

static bh_kernel *kernel_of(bh_context *context, const char *path) {
    static uint32_t code[1 << 18];
    FILE *file = fopen(path, "rb");
    if (!file) {
        bench_die("%s cannot be opened", path);
    }
    const size_t size = fread(code, 1, sizeof code, file);
    fclose(file);
    return bench_kernel(context, code, size, NULL);
}

static bh_event *launch(bh_stream *stream, bh_kernel *kernel, bh_buffer *buffer, uint32_t groups,
                        uint64_t deadline_ns) {
    const bh_binding binding = {0, 0, buffer, 0, BH_WHOLE_SIZE, BH_ACCESS_READ | BH_ACCESS_WRITE,
                                0};
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = kernel, .groups = {groups, 1, 1}, .bindings = &binding, .binding_count = 1}};
    return bench_submit(stream, BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1,
                                           .deadline_ns = deadline_ns));
}

/* A round trip of a small kernel, in nanoseconds. */
static uint64_t round_trip(bh_stream *stream, bh_kernel *kernel, bh_buffer *buffer) {
    const uint64_t began = bench_now_ns();
    bench_finish(launch(stream, kernel, buffer, 1, BENCH_TIMEOUT_NS));
    return bench_now_ns() - began;
}

static const char usage[] =
    "Usage: bench-hang-neighbour HANG DEADLINE_MS [DEVICE]\n"
    "Runs the endless kernel HANG (hang.spv) with a deadline, and small jobs on another stream.\n"
    "Prints what the deadline cost these jobs. DEVICE: as `bulkhead devices` shows it.\n";

int main(int argc, char **argv) {
    bench_help(argc, argv, usage);
    if (argc < 3 || argc > 4) {
        fputs(usage, stderr);
        return 2;
    }
    const uint64_t deadline_ns = bench_number("DEADLINE_MS", argv[2], 1, 600000) * 1000000ull;
    const bh_stream_options *options =
        BENCH_WITH(bh_stream_options, .device = argc > 3 ? argv[3] : NULL);
    bh_context *context = bench_context(NULL);
    bh_stream *hog = bench_stream(context, options), *neighbour = bench_stream(context, options);
    bh_buffer *a = bench_buffer(context, NULL, BH_MEMORY_HOST, 256);
    bh_buffer *b = bench_buffer(context, NULL, BH_MEMORY_HOST, 256);
    bh_buffer *c = bench_buffer(context, NULL, BH_MEMORY_HOST, 256);
    bh_kernel *hang = kernel_of(context, argv[1]);
    bh_kernel *small =
        bench_kernel(context, BENCH_CODE[BENCH_COUNT].words, BENCH_CODE[BENCH_COUNT].bytes, NULL);
    bench_ready(hog);
    uint64_t usual[BEFORE];
    (void)round_trip(neighbour, small, b); /* compiled before it is timed */
    for (int i = 0; i < BEFORE; i++) {
        usual[i] = round_trip(neighbour, small, b);
    }
    (void)round_trip(hog, small, c);
    const uint64_t began = bench_now_ns();
    bh_event *event = launch(hog, hang, a, 64, deadline_ns);
    uint64_t slowest = 0;
    unsigned count = 0;
    while (bh_event_query(event) == BH_EVENT_PENDING) {
        const uint64_t one = round_trip(neighbour, small, b);
        slowest = one > slowest ? one : slowest;
        count++;
    }
    const double stopped = (double)(bench_now_ns() - began) / 1e6;
    const bh_status status = bh_event_wait(event, BENCH_TIMEOUT_NS);
    bh_event_release(event);
    (void)round_trip(hog, small, c); /* the other buffer is poisoned */
    const double again = (double)(bench_now_ns() - began) / 1e6;
    printf("{\"stopped_ms\": %.1f, \"again_ms\": %.1f, \"verdict\": \"%s\", "
           "\"neighbour_usual_ms\": %.3f, \"neighbour_slowest_ms\": %.1f, \"neighbour_trips\": %u, "
           "\"neighbour_lost\": 0}\n",
           stopped, again, bh_status_name(status), (double)bench_quantile(usual, BEFORE, 500) / 1e6,
           (double)slowest / 1e6, count);
    bh_buffer_release(a), bh_buffer_release(b), bh_buffer_release(c);
    bh_kernel_release(hang), bh_kernel_release(small);
    bh_stream_release(hog), bh_stream_release(neighbour);
    bh_context_destroy(context);
    return 0;
}
