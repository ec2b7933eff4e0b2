/* bench-hang-neighbour: an endless kernel on one stream, short ones on another: when the host hears
 * that the first was stopped, when its stream works again, and how long the neighbour stood still.
 * bench/browser runs it beside Chromium. Usage: bench-hang-neighbour HANG DEADLINE_MS [DEVICE] */
#include "bench/bench.h"
#include "bench/samples.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS (60ull * 1000000000)
#define BEFORE  200 /* round trips of the neighbour alone */

static bh_detail why;

static bh_kernel *kernel_of(bh_context *context, const char *path) {
    static char code[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) {
        bench_die("%s cannot be opened", path);
    }
    const size_t size = fread(code, 1, sizeof code, file);
    fclose(file);
    bh_kernel *kernel = NULL;
    bench_must(bh_kernel_create_spirv(context, code, size, NULL, &kernel, &why), path, &why);
    return kernel;
}

static bh_event *launch(bh_stream *stream, bh_kernel *kernel, bh_buffer *buffer, uint32_t groups,
                        uint64_t deadline_ns) {
    const bh_binding binding = {0, 0, buffer, 0, BH_WHOLE_SIZE, BH_ACCESS_READ | BH_ACCESS_WRITE,
                                0};
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = kernel, .groups = {groups, 1, 1}, .bindings = &binding, .binding_count = 1}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = deadline_ns};
    bh_event *event = NULL;
    bench_must(bh_submit(stream, &info, &event, &why), "bh_submit", &why);
    return event;
}

static bh_status ended(bh_event *event) {
    const bh_status status = bh_event_wait(event, WAIT_NS);
    bh_event_release(event);
    return status;
}

/* A round trip of a small kernel, in nanoseconds. */
static uint64_t round_trip(bh_stream *stream, bh_kernel *kernel, bh_buffer *buffer) {
    const uint64_t began = bench_now_ns();
    if (ended(launch(stream, kernel, buffer, 1, WAIT_NS)) != BH_OK) {
        bench_die("a short job failed");
    }
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
    bh_context *context = NULL;
    bh_stream *hog = NULL, *neighbour = NULL;
    bh_buffer *a = NULL, *b = NULL, *c = NULL;
    bh_stream_options options = {.struct_size = sizeof options};
    options.device = argc > 3 ? argv[3] : NULL;
    bench_must(bh_context_create(NULL, &context, &why), "bh_context_create", &why);
    bench_must(bh_stream_create(context, &options, &hog, &why), "bh_stream_create", &why);
    bench_must(bh_stream_create(context, &options, &neighbour, &why), "bh_stream_create", &why);
    bench_must(bh_buffer_create(context, 256, NULL, &a, &why), "bh_buffer_create", &why);
    bench_must(bh_buffer_create(context, 256, NULL, &b, &why), "bh_buffer_create", &why);
    bench_must(bh_buffer_create(context, 256, NULL, &c, &why), "bh_buffer_create", &why);
    bh_kernel *hang = kernel_of(context, argv[1]), *small = NULL;
    bench_must(bh_kernel_create_spirv(context, BENCH_CODE[BENCH_COUNT].words,
                                      BENCH_CODE[BENCH_COUNT].bytes, NULL, &small, &why),
               "bh_kernel_create_spirv", &why);
    bench_must(bh_stream_wait_ready(hog, WAIT_NS, &why), "bh_stream_wait_ready", &why);
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
    const bh_status status = ended(event);
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
