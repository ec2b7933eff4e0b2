/* bench-streams: what many streams cost, and how soon a stream goes on after its worker has died.
 *
 *     bench-streams [--device D] [--worker PATH] [--streams N] [--rounds N] [--quick]
 *
 * The first table makes N streams in a fresh context: how long until a job on one of them is done,
 * until one on each is, how much private memory a worker has, how much processor time idle workers
 * take, and how long the end of the context takes. The second does so for streams that have no
 * worker before their first submission. The third kills an idle worker, and takes the time until
 * the next result of the kernel that its stream had run: without a spare, with one, and with one
 * that knows the kernel. */
#include "bench.h"

#include <bulkhead/bulkhead.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST         256u
#define MOST_AT_REST 1000u
#define MOST_ROUND   64u
#define WATCH_S      2

static const uint32_t MATMUL[] =
#include "guard_matmul.inc"
    ;

struct options {
    const char *device, *worker;
    unsigned streams, rounds;
};

/* -- contexts ---------------------------------------------------------------------------------- */

static bh_context_options context_options(const struct options *options) {
    bh_context_options with = {.struct_size = sizeof with};
    with.worker_path = options->worker;
    with.spares = BH_OFF;
    return with;
}

static bh_stream *open_stream(const struct options *options, bh_context *context) {
    return bench_stream(context, BENCH_WITH(bh_stream_options, .device = options->device));
}

static bh_kernel *open_empty(bh_context *context) {
    return bench_kernel(context, BENCH_CODE[BENCH_EMPTY].words, BENCH_CODE[BENCH_EMPTY].bytes,
                        NULL);
}

static bh_event *launch_empty(bh_stream *stream, bh_kernel *kernel) {
    return bench_launch(stream, kernel, (uint32_t[]){1, 1, 1}, NULL, 0, NULL, 0);
}

/* -- processes --------------------------------------------------------------------------------- */

/* Of /proc/PID/smaps_rollup; 0: it cannot be read. */
static uint64_t private_bytes(int pid) {
    char path[64], line[256];
    unsigned long long kib, sum = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Private_Clean: %llu", &kib) == 1 ||
            sscanf(line, "Private_Dirty: %llu", &kib) == 1) {
            sum += kib * 1024;
        }
    }
    if (file) {
        fclose(file);
    }
    return sum;
}

static uint64_t processor_ns(int pid) {
    clockid_t clock;
    struct timespec time;
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* -- many streams ------------------------------------------------------------------------------ */

static void measure_streams(const struct options *options, unsigned count) {
    static bh_stream *streams[MOST];
    static bh_event *events[MOST];
    static int pids[MOST];
    const bh_context_options with = context_options(options);
    bh_context *context = bench_context(&with);
    bh_kernel *kernel = open_empty(context);
    const uint64_t began = bench_now_ns();
    for (unsigned i = 0; i < count; i++) {
        streams[i] = open_stream(options, context);
    }
    for (unsigned i = 0; i < count; i++) {
        events[i] = launch_empty(streams[i], kernel);
    }
    size_t first = 0;
    BENCH_MUST(bh_event_wait_any(events, count, BENCH_TIMEOUT_NS, &first));
    const uint64_t one = bench_now_ns();
    for (unsigned i = 0; i < count; i++) {
        bench_finish(events[i]);
    }
    const uint64_t all = bench_now_ns();
    uint64_t memory = 0, used = 0;
    for (unsigned i = 0; i < count; i++) {
        pids[i] = bh_stream_worker_pid(streams[i]);
        memory += private_bytes(pids[i]);
        used -= processor_ns(pids[i]);
    }
    const struct timespec watch = {.tv_sec = WATCH_S};
    nanosleep(&watch, NULL);
    for (unsigned i = 0; i < count; i++) {
        used += processor_ns(pids[i]);
        bh_stream_release(streams[i]);
    }
    bh_kernel_release(kernel);
    const uint64_t ends = bench_now_ns();
    BENCH_MUST(bh_context_destroy(context));
    printf("%7u  %9.1f ms  %9.1f ms  %9.1f MiB  %11.2f ms/s  %9.1f ms\n", count,
           (double)(one - began) / 1e6, (double)(all - began) / 1e6,
           (double)memory / count / 1048576, (double)used / 1e6 / WATCH_S,
           (double)(bench_now_ns() - ends) / 1e6);
}

/* Streams that get a worker with their first submission: one of them has one. */
static void measure_at_rest(const struct options *options, unsigned count) {
    static bh_stream *streams[MOST_AT_REST];
    bh_context_options with = context_options(options);
    with.worker_idle_ns = BH_FOREVER;
    bh_context *context = bench_context(&with);
    bh_kernel *kernel = open_empty(context);
    const uint64_t began = bench_now_ns();
    for (unsigned i = 0; i < count; i++) {
        streams[i] = open_stream(options, context);
    }
    bench_finish(launch_empty(streams[count / 2], kernel));
    const uint64_t done = bench_now_ns();
    const int pid = bh_stream_worker_pid(streams[count / 2]);
    uint64_t used = 0 - processor_ns(pid) - processor_ns(getpid());
    const struct timespec watch = {.tv_sec = WATCH_S};
    nanosleep(&watch, NULL);
    used += processor_ns(pid) + processor_ns(getpid());
    for (unsigned i = 0; i < count; i++) {
        bh_stream_release(streams[i]);
    }
    bh_kernel_release(kernel);
    const uint64_t ends = bench_now_ns();
    BENCH_MUST(bh_context_destroy(context));
    printf("%7u  %9.1f ms  %35.2f ms/s  %9.1f ms\n", count, (double)(done - began) / 1e6,
           (double)used / 1e6 / WATCH_S, (double)(bench_now_ns() - ends) / 1e6);
}

/* -- after a death ----------------------------------------------------------------------------- */

struct work {
    bh_stream *stream;
    bh_kernel *kernel;
    bh_buffer *buffers[2];
};

static struct work make_work(const struct options *options, bh_context *context) {
    struct work work = {.stream = open_stream(options, context),
                        .kernel = bench_kernel(context, MATMUL, sizeof MATMUL, NULL)};
    for (int i = 0; i < 2; i++) {
        work.buffers[i] = bench_buffer(context, NULL, BH_MEMORY_HOST, 4 * 64 * 64);
    }
    return work;
}

static void run(struct work *work) {
    const bh_binding bound[] = {bh_bind_read(0, work->buffers[0]),
                                bh_bind_read_write(1, work->buffers[1])};
    const uint32_t groups[3] = {4, 4, 1}, n = 64;
    bench_finish(bench_launch(work->stream, work->kernel, groups, bound, 2, &n, sizeof n));
}

/* Until the only spare is ready; |known|: and knows the kernel. */
static void await_spare(bh_context *context, bool known) {
    static char text[65536];
    const uint64_t began = bench_now_ns();
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    const char *line;
    do {
        if (bench_now_ns() - began > BENCH_TIMEOUT_NS) {
            bench_die("no spare becomes ready:\n%s", text);
        }
        nanosleep(&pause, NULL);
        bh_context_describe(context, text, sizeof text);
        line = strstr(text, "spare worker ");
    } while (!line || !strstr(line, known ? ", 1 known kernel" : ", ready"));
}

/* Kills an idle worker, and waits for the next result of the kernel that has run there: until the
 * death is seen, and until the result is there. */
static void measure_death(const struct options *options, const char *what,
                          const bh_context_options *with) {
    static uint64_t seen[MOST_ROUND], good[MOST_ROUND];
    bh_context *context = bench_context(with);
    struct work work = make_work(options, context);
    run(&work);
    run(&work);
    for (unsigned i = 0; i < options->rounds; i++) {
        if (with->spares != BH_OFF) {
            await_spare(context, with->spare_kernels);
        }
        const int pid = bh_stream_worker_pid(work.stream);
        const uint64_t began = bench_now_ns();
        if (pid <= 0 || kill(pid, SIGKILL) != 0) {
            bench_die("cannot kill worker %d", pid);
        }
        while (bh_stream_worker_pid(work.stream) == pid) {
            const struct timespec pause = {.tv_nsec = 20000};
            nanosleep(&pause, NULL);
        }
        seen[i] = bench_now_ns() - began;
        run(&work);
        good[i] = bench_now_ns() - began;
    }
    for (int i = 0; i < 2; i++) {
        bh_buffer_release(work.buffers[i]);
    }
    bh_kernel_release(work.kernel);
    bh_stream_release(work.stream);
    BENCH_MUST(bh_context_destroy(context));
    printf("  %-38s %8.1f ms %14.1f ms\n", what,
           (double)bench_quantile(seen, options->rounds, 500) / 1e6,
           (double)bench_quantile(good, options->rounds, 500) / 1e6);
}

static void measure_deaths(const struct options *options, const char *folder) {
    bh_context_options with = context_options(options);
    printf("\ndeath of an idle worker, p50 of %-8u  until it is seen  until the next good result\n",
           options->rounds);
    measure_death(options, "no spare", &with);
    with.spares = 1;
    with.spare_kernels = 0;
    measure_death(options, "a spare, kernels unknown", &with);
    with.cache_dir = folder;
    measure_death(options, "a spare, unknown, a pipeline cache", &with);
    with.spare_kernels = 16;
    measure_death(options, "a spare, kernels known, a cache", &with);
    with.cache_dir = NULL;
    measure_death(options, "a spare, kernels known", &with);
}

static void remove_folder(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) {
        fprintf(stderr, "bench-streams: %s could not be removed\n", folder);
    }
}

static const char usage[] =
    "Usage: bench-streams [--device D] [--worker PATH] [--streams N] [--rounds N] [--quick]\n"
    "What many streams cost, and how soon a stream has a good result after a death.\n"
    "  --device D     a selector, as `bulkhead devices` shows it\n"
    "  --worker PATH  the worker executable\n"
    "  --streams N    the most streams (default 64)\n"
    "  --rounds N     rounds (default 9)\n"
    "  --quick        two streams, one round: does it work\n";

int main(int argc, char **argv) {
    struct options options = {.streams = 0};
    bool quick = false;
    const struct bench_option accepted[] = {
        {"--quick", .flag = &quick},
        {"--device", .text = &options.device},
        {"--worker", .text = &options.worker},
        {"--streams", .number = &options.streams, .least = 1, .most = MOST},
        {"--rounds", .number = &options.rounds, .least = 1, .most = MOST_ROUND},
        {0}};
    bench_parse(argc, argv, accepted, usage);
    options.streams = options.streams ? options.streams : quick ? 2 : 64;
    options.rounds = options.rounds ? options.rounds : quick ? 1 : 9;
    printf("streams  first job done  all jobs done  private/worker  idle processor  context's "
           "end\n");
    for (unsigned count = 1; count < options.streams; count *= 8) {
        measure_streams(&options, count);
    }
    measure_streams(&options, options.streams);
    printf("\nstreams without a worker before their first submission; one has one:\n"
           "streams  first job done                   host and its worker  context's end\n");
    measure_at_rest(&options, options.streams);
    measure_at_rest(&options, options.rounds > 1 ? MOST_AT_REST : 2);
    char folder[] = "/tmp/bench-streams-XXXXXX";
    if (!mkdtemp(folder)) {
        bench_die("no folder for pipeline caches");
    }
    measure_deaths(&options, folder);
    remove_folder(folder);
    return 0;
}
