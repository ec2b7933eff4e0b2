/* bench-isolation: what a worker for each job costs, against a stream's worker for all, and against
 * what cannot be saved: a worker's start and the compile of the job's kernel, each measured alone.
 */
#include "common.h"

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST   64u
#define MS     1000000ull
#define TARGET 1.2 /* of start, compile and run */
#define ROUNDS 64u /* far from where llvmpipe ends a loop */

static const uint32_t job_code[] =
#include "job.inc"
    ;

struct bench {
    bh_context *context;
    bh_kernel *kernel;
    const char *device;
    uint32_t
        groups; /* of a job, each with ROUNDS of arithmetic; 0: one that does next to nothing */
};

static bh_stream *make_stream(const struct bench *bench, bh_isolation isolation) {
    return bench_stream(bench->context, BENCH_WITH(bh_stream_options, .device = bench->device,
                                                   .isolation = isolation));
}

static bh_event *launch(const struct bench *bench, bh_stream *stream, bh_buffer *buffer,
                        uint32_t groups) {
    const bh_binding binding = bh_bind_write(0, buffer);
    const uint32_t size[3] = {groups ? groups : 1, 1, 1}, push[2] = {1, groups ? ROUNDS : 0};
    return bench_launch(stream, bench->kernel, size, &binding, 1, push, sizeof push);
}

static bh_buffer *make_buffer(const struct bench *bench) {
    return bench_buffer(bench->context, NULL, BH_MEMORY_HOST, 64);
}

/* A worker's start, and then the first run of the kernel there, which compiles it. The context has
 * no spares, and a zygote. */
static void measure_alone(const struct bench *bench, uint64_t *out_start, uint64_t *out_compile) {
    bh_buffer *buffer = make_buffer(bench);
    const uint64_t began = bench_now_ns();
    bh_stream *stream = make_stream(bench, BH_ISOLATION_STREAM);
    bench_ready(stream);
    const uint64_t ready = bench_now_ns();
    bench_finish(launch(bench, stream, buffer, 0));
    *out_start = ready - began;
    *out_compile = bench_now_ns() - ready;
    bh_stream_release(stream);
    bh_buffer_release(buffer);
}

/* A job, of |count| that are queued at once. */
static uint64_t measure_jobs(const struct bench *bench, bh_stream *stream, uint32_t count) {
    bh_event *events[MOST];
    bh_buffer *buffers[MOST];
    for (uint32_t i = 0; i < count; i++) {
        buffers[i] = make_buffer(bench);
    }
    const uint64_t began = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        events[i] = launch(bench, stream, buffers[i], bench->groups);
    }
    for (uint32_t i = 0; i < count; i++) {
        bench_finish(events[i]);
    }
    const uint64_t took = bench_now_ns() - began;
    for (uint32_t i = 0; i < count; i++) {
        bh_buffer_release(buffers[i]);
    }
    return took / count;
}

static double ms(uint64_t ns) {
    return (double)ns / (double)MS;
}

/* Without spares: what is there is what isolation asks for. */
static void open_context(struct bench *bench) {
    bench->context = bench_context(BENCH_WITH(bh_context_options, .spares = BH_OFF));
    bench->kernel = bench_kernel(bench->context, job_code, sizeof job_code, NULL);
}

/* So many groups that a job takes about |target_ns| on a worker that has the kernel. */
static uint32_t calibrate(struct bench *bench, bh_stream *stream, uint64_t target_ns) {
    for (bench->groups = 16; bench->groups < 32768; bench->groups *= 2) {
        if (measure_jobs(bench, stream, 2) >= target_ns) {
            break;
        }
    }
    return bench->groups;
}

static const char usage[] = "Usage: bench-isolation [--quick] [--strict] [--device SELECTOR]\n"
                            "What a worker for each job costs, against one worker for all jobs.\n"
                            "  --quick            one short round: does it work\n"
                            "  --strict           exit status 3 where a target is missed\n"
                            "  --device SELECTOR  as `bulkhead devices` shows it\n";

int main(int argc, char **argv) {
    struct bench bench = {0};
    bool quick = false, strict = false;
    const struct bench_option options[] = {{"--quick", .flag = &quick},
                                           {"--strict", .flag = &strict},
                                           {"--device", .text = &bench.device},
                                           {0}};
    bench_parse(argc, argv, options, usage);
    const uint32_t rounds = quick ? 1 : 9, jobs = quick ? 3 : 16;
    open_context(&bench);
    /* Workers that isolated streams have left over would be there at once. */
    struct bench apart = bench;
    open_context(&apart);
    bh_stream *zygote = make_stream(&apart, BH_ISOLATION_STREAM);
    bh_stream *shared = make_stream(&bench, BH_ISOLATION_STREAM);
    uint64_t start, compile;
    measure_alone(&apart, &start, &compile); /* the zygote, and cold caches */
    measure_jobs(&bench, shared, 1);

    static const uint64_t lengths[] = {0, 100 * MS};
    bool held = true;
    printf("%ld processors; medians of %u rounds, %u jobs each\n\n", sysconf(_SC_NPROCESSORS_ONLN),
           rounds, jobs);
    printf("job's run  start    compile  own worker  shared   own/shared  own/(start+compile)  "
           "own/(start+compile+run)\n");
    for (size_t length = 0; length < sizeof lengths / sizeof *lengths; length++) {
        uint64_t starts[MOST], compiles[MOST], owns[MOST], shares[MOST];
        bench.groups = lengths[length] ? calibrate(&bench, shared, lengths[length]) : 0;
        for (uint32_t i = 0; i < rounds; i++) {
            measure_alone(&apart, &starts[i], &compiles[i]);
            bh_stream *isolated = make_stream(&bench, BH_ISOLATION_SUBMISSION);
            bench_ready(isolated);
            owns[i] = measure_jobs(&bench, isolated, jobs);
            bh_stream_release(isolated);
            shares[i] = measure_jobs(&bench, shared, jobs);
        }
        start = bench_quantile(starts, rounds, 500);
        compile = bench_quantile(compiles, rounds, 500);
        const uint64_t own = bench_quantile(owns, rounds, 500);
        const uint64_t share = bench_quantile(shares, rounds, 500);
        const uint64_t alone = start + compile;
        const uint64_t run = lengths[length] ? share : 0;
        const double ratio = (double)own / (double)alone;
        printf("%6.1f ms  %5.1f ms  %5.1f ms  %7.1f ms  %6.2f ms  %9.1f  %19.2f  %23.2f\n", ms(run),
               ms(start), ms(compile), ms(own), ms(share), (double)own / (double)share, ratio,
               (double)own / (double)(alone + run));
        held &= (double)own / (double)(alone + run) <= TARGET;
    }
    printf("\ntarget: own/(start+compile+run) at most %.1f: %s\n", TARGET,
           held ? "kept" : "missed");
    bh_stream_release(zygote);
    bh_stream_release(shared);
    bh_kernel_release(bench.kernel);
    bh_kernel_release(apart.kernel);
    bh_context_destroy(bench.context);
    bh_context_destroy(apart.context);
    return strict && !held ? 3 : 0;
}
