/* bench-device-pool: a buffer in device memory that is made, used and released, with what the last
 * one has left behind and without: fresh memory for each.
 *
 *     bench-device-pool [--device D] [--worker PATH] [--mib N] [--rounds N] [--quick]
 *
 * A turn is bh_buffer_create, a command that overwrites all of the buffer, the wait for its
 * end, and bh_buffer_release. What the worker still has to do for a buffer that is gone is part of
 * the next turn. */
#include "common.h"

#include <bulkhead/bulkhead.h>
#include <bulkhead/stats.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TURNS 20u
#define MOST  101u
#define LIMIT (8ull << 30) /* of what the pool keeps */

struct side {
    const char *name;
    bh_context *context;
    bh_stream *stream;
    uint64_t rounds[MOST]; /* medians */
    uint64_t worst;
};

static bh_buffer *make(const struct side *side, uint64_t bytes) {
    return bench_buffer(side->context, side->stream, BH_MEMORY_DEVICE, bytes);
}

static uint64_t turn_ns(const struct side *side, uint64_t bytes) {
    const uint64_t began = bench_now_ns();
    bh_buffer *buffer = make(side, bytes);
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 0x5a5a5a5a}};
    bench_finish(bench_submit(side->stream,
                              BENCH_WITH(bh_submit_info, .commands = &fill, .command_count = 1)));
    bh_buffer_release(buffer);
    return bench_now_ns() - began;
}

/* What the last one has left behind is not in the next one. */
static void check(const struct side *side, uint64_t bytes) {
    bh_buffer *buffer = make(side, bytes);
    uint32_t ends[2] = {1, 1};
    BENCH_MUST(bh_buffer_read(buffer, 0, &ends[0], 4, BENCH_TIMEOUT_NS, &bench_why));
    BENCH_MUST(bh_buffer_read(buffer, bytes - 4, &ends[1], 4, BENCH_TIMEOUT_NS, &bench_why));
    if (ends[0] || ends[1]) {
        bench_die("%s: a new buffer is not zero", side->name);
    }
    bh_buffer_release(buffer);
}

static void open_side(struct side *side, const char *device, const char *worker, uint64_t limit) {
    side->context = bench_context(BENCH_WITH(bh_context_options, .worker_path = worker,
                                             .spares = BH_OFF, .pool_limit = limit));
    side->stream = bench_stream(side->context, BENCH_WITH(bh_stream_options, .device = device,
                                                          .deadline_ns = BENCH_TIMEOUT_NS));
    bench_ready(side->stream);
}

static void run_round(struct side *side, unsigned round, uint64_t bytes, uint32_t turns) {
    uint64_t samples[TURNS];
    (void)turn_ns(side, bytes);
    for (uint32_t i = 0; i < turns; i++) {
        samples[i] = turn_ns(side, bytes);
        side->worst = samples[i] > side->worst ? samples[i] : side->worst;
    }
    side->rounds[round] = bench_quantile(samples, turns, 500);
    check(side, bytes);
}

static const char usage[] =
    "Usage: bench-device-pool [--device D] [--worker PATH] [--mib N] [--rounds N] [--quick]\n"
    "A buffer in device memory that is made, used and released: out of the pool, and fresh.\n"
    "  --device D     a selector, as `bulkhead devices` shows it\n"
    "  --worker PATH  the worker executable\n"
    "  --mib N        its size (default 64)\n"
    "  --rounds N     rounds (default 15)\n"
    "  --quick        one short round: does it work\n";

int main(int argc, char **argv) {
    const char *device = NULL, *worker = NULL;
    unsigned rounds = 0, mib = 64;
    bool quick = false;
    const struct bench_option options[] = {
        {"--quick", .flag = &quick},
        {"--device", .text = &device},
        {"--worker", .text = &worker},
        {"--mib", .number = &mib, .least = 1, .most = 4096},
        {"--rounds", .number = &rounds, .least = 1, .most = MOST},
        {0}};
    bench_parse(argc, argv, options, usage);
    const uint32_t turns = quick ? 3 : TURNS;
    rounds = rounds ? rounds : quick ? 1 : 15;
    const uint64_t bytes = (uint64_t)mib << 20;
    static struct side sides[2] = {{.name = "out of the pool"}, {.name = "fresh"}};
    open_side(&sides[0], device, worker, LIMIT);
    open_side(&sides[1], device, worker, BH_OFF);
    for (unsigned round = 0; round < rounds; round++) { /* in turns, every other one backwards */
        run_round(&sides[round % 2], round, bytes, turns);
        run_round(&sides[1 - round % 2], round, bytes, turns);
    }
    double us[2];
    for (int i = 0; i < 2; i++) {
        us[i] = (double)bench_quantile(sides[i].rounds, rounds, 500) / 1e3;
        printf("%u MiB, %-16s p50 %10.1f us, at most %10.1f us\n", mib, sides[i].name, us[i],
               (double)sides[i].worst / 1e3);
    }
    bh_stats stats = {.struct_size = sizeof stats};
    BENCH_MUST(bh_context_stats(sides[0].context, &stats, NULL, 0, NULL, NULL));
    printf("fresh / out of the pool: %.2f (%llu buffers got kept device memory, %llu kept host "
           "memory)\n",
           us[1] / us[0], (unsigned long long)stats.device_pool_hits,
           (unsigned long long)stats.pool_hits);
    for (int i = 0; i < 2; i++) {
        bh_stream_release(sides[i].stream);
        bh_context_destroy(sides[i].context);
    }
    return 0;
}
