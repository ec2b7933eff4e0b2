/* bench-hop: a launch that depends on a launch of another stream. How much later does it end than
 * on one stream?
 *
 *     bench-hop [--device D] [--worker PATH] [--rounds N] [--quick] [--strict]
 *
 * A pair is two launches, the second of which waits for the event of the first; the host waits for
 * the second only. The hop is the median of pairs on two streams less that of pairs on one. The
 * rows of launches that the host waits for one by one, on two streams in turn and on one, show what
 * of that is the device's: a GPU has to change from one process to the other. */
#include "bench.h"

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS     500u
#define MOST      64u
#define TARGET_US 15.0

struct side {
    bh_context *context;
    bh_stream *streams[2];
    bh_kernel *kernel;
};

static bh_event *launch(const struct side *side, bh_stream *stream, bh_event *after) {
    const bh_command command = {.type = BH_COMMAND_DISPATCH,
                                .dispatch = {.kernel = side->kernel, .groups = {1, 1, 1}}};
    return bench_submit(stream, BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1,
                                           .waits = &after, .wait_count = after ? 1 : 0));
}

static uint64_t pair_ns(const struct side *side, bh_stream *first, bh_stream *second) {
    const uint64_t began = bench_now_ns();
    bh_event *producer = launch(side, first, NULL), *last = launch(side, second, producer);
    bench_await(last);
    const uint64_t took = bench_now_ns() - began;
    bh_event_release(producer);
    bh_event_release(last);
    return took;
}

static uint64_t waited_ns(const struct side *side, bh_stream *first, bh_stream *second) {
    const uint64_t began = bench_now_ns();
    bh_event *one = launch(side, first, NULL);
    bench_await(one);
    bh_event *other = launch(side, second, NULL);
    bench_await(other);
    const uint64_t took = bench_now_ns() - began;
    bh_event_release(one);
    bh_event_release(other);
    return took;
}

enum row { PAIR_ONE, PAIR_TWO, WAITED_ONE, WAITED_TWO, ROWS };

static const char *const names[ROWS] = {"pair on one stream", "pair on two streams",
                                        "two launches, each waited for, on one stream",
                                        "two launches, each waited for, on two streams"};

static uint64_t sample(const struct side *side, enum row row) {
    bh_stream *first = side->streams[0];
    bh_stream *second = side->streams[row == PAIR_TWO || row == WAITED_TWO];
    return row <= PAIR_TWO ? pair_ns(side, first, second) : waited_ns(side, first, second);
}

static struct side open_side(const char *device, const char *worker) {
    struct side side = {.context =
                            bench_context(BENCH_WITH(bh_context_options, .worker_path = worker))};
    const struct bench_code *code = &BENCH_CODE[BENCH_EMPTY];
    side.kernel = bench_kernel(side.context, code->words, code->bytes, NULL);
    for (int i = 0; i < 2; i++) { /* compiled before it is timed */
        side.streams[i] =
            bench_stream(side.context, BENCH_WITH(bh_stream_options, .device = device));
        bench_finish(launch(&side, side.streams[i], NULL));
    }
    return side;
}

static const char usage[] =
    "Usage: bench-hop [--device D] [--worker PATH] [--rounds N] [--quick] [--strict]\n"
    "What a launch costs that depends on a launch of another stream.\n"
    "  --device D     a selector, as `bulkhead devices` shows it\n"
    "  --worker PATH  the worker executable\n"
    "  --rounds N     rounds (default 15)\n"
    "  --quick        one short round: does it work\n"
    "  --strict       exit status 3 where a target is missed\n";

int main(int argc, char **argv) {
    const char *device = NULL, *worker = NULL;
    unsigned rounds = 0;
    bool quick = false, strict = false;
    const struct bench_option options[] = {
        {"--quick", .flag = &quick},
        {"--strict", .flag = &strict},
        {"--device", .text = &device},
        {"--worker", .text = &worker},
        {"--rounds", .number = &rounds, .least = 1, .most = MOST},
        {0}};
    bench_parse(argc, argv, options, usage);
    const uint32_t pairs = quick ? 20 : PAIRS;
    rounds = rounds ? rounds : quick ? 1 : 15;
    struct side side = open_side(device, worker);
    static uint64_t samples[PAIRS], medians[ROWS][MOST], worst[ROWS];
    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < ROWS; i++) { /* in turns, every other round backwards */
            const enum row row = (enum row)(round % 2 ? ROWS - 1 - i : i);
            for (uint32_t n = 0; n < pairs; n++) {
                samples[n] = sample(&side, row);
            }
            medians[row][round] = bench_quantile(samples, pairs, 500);
            const uint64_t p99 = bench_quantile(samples, pairs, 990);
            worst[row] = p99 > worst[row] ? p99 : worst[row];
        }
    }
    double us[ROWS];
    for (int row = 0; row < ROWS; row++) {
        us[row] = (double)bench_quantile(medians[row], rounds, 500) / 1e3;
        printf("%-46s p50 %8.1f us, p99 at most %8.1f us\n", names[row], us[row],
               (double)worst[row] / 1e3);
    }
    const double hop = us[PAIR_TWO] - us[PAIR_ONE];
    const bool held = hop <= TARGET_US;
    printf("\nhop %.1f us (target %.0f: %s); of that the device's change of process at most %.1f "
           "us\n",
           hop, TARGET_US, held ? "kept" : "missed", us[WAITED_TWO] - us[WAITED_ONE]);
    bh_kernel_release(side.kernel);
    for (int i = 0; i < 2; i++) {
        bh_stream_release(side.streams[i]);
    }
    bh_context_destroy(side.context);
    return strict && !held ? 3 : 0;
}
