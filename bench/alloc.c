/* bench-alloc: what memory for a buffer costs: fresh, out of the pool, and from malloc.
 *
 * An allocation is made, touched once a page, and released. A job is that, and a command on the
 * device that overwrites all of it: made and bound anew each time. */
#include "common.h"

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SMALLEST 4096ull
#define LARGEST  (64ull << 20)
#define MOST     1001u
#define TARGET   20.0 /* fresh against pooled, at LARGEST */

enum side { FRESH, POOLED, HOT, MALLOC, FRESH_JOB, HOT_JOB, SIDES };

struct bench {
    bh_context *pooled, *fresh; /* with a pool, and with none */
    bh_stream *pooled_stream, *fresh_stream;
    size_t page;
};

struct result {
    uint64_t ns[SIDES];
    double faults[SIDES]; /* page faults of this process, each */
};

static long page_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void touch(const struct bench *bench, volatile char *bytes, uint64_t size) {
    for (uint64_t at = 0; at < size; at += bench->page) {
        bytes[at] = 1;
    }
}

static void run_job(bh_stream *stream, bh_buffer *buffer) {
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 0x5a5a5a5a}};
    bench_finish(
        bench_submit(stream, BENCH_WITH(bh_submit_info, .commands = &fill, .command_count = 1)));
}

static void one(const struct bench *bench, enum side side, uint64_t size) {
    if (side == MALLOC) {
        volatile char *bytes = malloc(size);
        if (!bytes) {
            bench_die("malloc(%llu) failed", (unsigned long long)size);
        }
        memset((char *)bytes, 0, size);
        touch(bench, bytes, size);
        free((char *)bytes);
        return;
    }
    bool fresh = side == FRESH || side == FRESH_JOB, job = side == FRESH_JOB || side == HOT_JOB;
    bh_stream *stream = fresh ? bench->fresh_stream : bench->pooled_stream;
    bh_buffer_options options = {.struct_size = sizeof options};
    if (side == HOT || side == HOT_JOB) {
        options.stream = stream;
        options.flags = BH_BUFFER_UNINITIALIZED;
    }
    bh_buffer *buffer;
    BENCH_MUST(bh_buffer_create(fresh ? bench->fresh : bench->pooled, size, &options, &buffer,
                                &bench_why));
    void *pointer = bench_map(buffer, BH_MAP_DISCARD);
    touch(bench, pointer, size);
    if (job) {
        run_job(stream, buffer);
        const char *bytes = pointer;
        if (bytes[0] != 0x5a || bytes[size - 1] != 0x5a) {
            bench_die("a job's result is wrong");
        }
    }
    bh_buffer_release(buffer);
}

/* Median of |count|. */
static void measure(const struct bench *bench, enum side side, uint64_t size, size_t count,
                    struct result *out) {
    static uint64_t samples[MOST];
    if (side == HOT) { /* memory that the stream's worker has */
        BENCH_MUST(bh_context_trim(bench->pooled, 0, &bench_why));
        one(bench, HOT_JOB, size);
    }
    one(bench, side, size); /* what is kept from here on is there */
    long before = page_faults();
    for (size_t i = 0; i < count; i++) {
        uint64_t start = bench_now_ns();
        one(bench, side, size);
        samples[i] = bench_now_ns() - start;
    }
    out->faults[side] = (double)(page_faults() - before) / (double)count;
    out->ns[side] = bench_quantile(samples, count, 500);
}

static void open_side(const char *worker, uint64_t limit, bh_context **context,
                      bh_stream **stream) {
    *context = bench_context(BENCH_WITH(bh_context_options, .worker_path = worker, .spares = BH_OFF,
                                        .pool_limit = limit));
    *stream = bench_stream(*context, NULL);
    bench_ready(*stream);
}

static void print_row(uint64_t size, const struct result *r, bool json, bool first) {
    const double us = 1e-3;
    double ratio = (double)r->ns[FRESH] / (double)r->ns[POOLED];
    if (json) {
        printf("%s\n  {\"bytes\":%llu,\"fresh_ns\":%llu,\"pooled_ns\":%llu,\"hot_ns\":%llu,"
               "\"malloc_ns\":%llu,\"fresh_job_ns\":%llu,\"hot_job_ns\":%llu,\"ratio\":%.2f,"
               "\"pooled_faults\":%.2f,\"hot_faults\":%.2f}",
               first ? "" : ",", (unsigned long long)size, (unsigned long long)r->ns[FRESH],
               (unsigned long long)r->ns[POOLED], (unsigned long long)r->ns[HOT],
               (unsigned long long)r->ns[MALLOC], (unsigned long long)r->ns[FRESH_JOB],
               (unsigned long long)r->ns[HOT_JOB], ratio, r->faults[POOLED], r->faults[HOT]);
        return;
    }
    printf("%8llu KiB %10.1f %10.1f %10.1f %10.1f %8.1fx %8.1fx %8.1fx %10.1f %10.1f %8.1fx\n",
           (unsigned long long)size / 1024, (double)r->ns[FRESH] * us, (double)r->ns[POOLED] * us,
           (double)r->ns[HOT] * us, (double)r->ns[MALLOC] * us, ratio,
           (double)r->ns[FRESH] / (double)r->ns[HOT], (double)r->ns[MALLOC] / (double)r->ns[POOLED],
           (double)r->ns[FRESH_JOB] * us, (double)r->ns[HOT_JOB] * us,
           (double)r->ns[FRESH_JOB] / (double)r->ns[HOT_JOB]);
}

static const char usage[] =
    "Usage: bench-alloc [--quick] [--json] [--strict] [--worker PATH]\n"
    "What memory for a buffer costs: fresh, out of the pool, and from malloc. Microseconds.\n"
    "  --quick        few rounds: does it work\n"
    "  --json         one object\n"
    "  --strict       exit status 3 where the target is missed: pooled 64 MiB at least 20 times\n"
    "                 as fast as fresh, without a page fault\n"
    "  --worker PATH  the worker executable\n";

int main(int argc, char **argv) {
    bool quick = false, json = false, strict = false;
    const char *worker = NULL;
    const struct bench_option options[] = {{"--quick", .flag = &quick},
                                           {"--json", .flag = &json},
                                           {"--strict", .flag = &strict},
                                           {"--worker", .text = &worker},
                                           {0}};
    bench_parse(argc, argv, options, usage);
    struct bench bench = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    open_side(worker, 1ull << 30, &bench.pooled, &bench.pooled_stream);
    open_side(worker, BH_OFF, &bench.fresh, &bench.fresh_stream);
    if (json) {
        printf("{\"benchmark\":\"alloc\",\"schema\":1,\"rows\":[");
    } else {
        printf("                 allocation, us                                 fresh /  fresh /  "
               "malloc /   job, us               fresh /\n"
               "%12s %10s %10s %10s %10s %9s %8s %9s %10s %10s %9s\n",
               "", "fresh", "pooled", "hot", "malloc", "pooled", "hot", "pooled", "fresh", "hot",
               "hot");
    }
    struct result result = {0};
    bool first = true;
    for (uint64_t size = SMALLEST; size <= LARGEST; size *= 4, first = false) {
        size_t count = quick ? 3 : size <= (1u << 20) ? 301 : 31;
        for (enum side side = 0; side < SIDES; side++) {
            measure(&bench, side, size, count, &result);
        }
        print_row(size, &result, json, first);
    }
    double ratio = (double)result.ns[FRESH] / (double)result.ns[POOLED];
    bool ok = ratio >= TARGET && result.faults[POOLED] < 1 && result.faults[HOT] < 1;
    if (json) {
        printf("\n],\"target_ratio\":%.0f,\"ok\":%s}\n", TARGET, ok ? "true" : "false");
    } else {
        printf("pooled is zeroed; hot is made for its stream, and not. %.1f and %.1f page faults "
               "at 64 MiB.\n64 MiB pooled: %.1fx as fast as fresh, target %.0fx: %s\n",
               result.faults[POOLED], result.faults[HOT], ratio, TARGET, ok ? "met" : "MISSED");
    }
    bh_stream_release(bench.pooled_stream);
    bh_stream_release(bench.fresh_stream);
    bh_context_destroy(bench.pooled);
    bh_context_destroy(bench.fresh);
    return strict && !ok ? 3 : 0;
}
