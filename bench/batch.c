/* bench-batch: what the journal of a batch costs. The same jobs run through the same runner with a
 * journal and without one, in turns in one run; each job computes for about a millisecond and
 * leaves a file, which is checked. */
#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sort.h"
#include "batch/runner/runner.h"
#include "common.h"
#include "tool/clock.h"

static const uint32_t code[] =
#include "job.inc"
    ;

enum { MOST_ROUNDS = 64, LARGEST_LOOP = 60000, SEEDS = 61 };
static const uint64_t job_ns = 1000000;
static const double target = 0.90;

struct options {
    unsigned jobs, rounds, streams;
    const char *device, *folder;
    bool json, strict;
};

struct side {
    const char *what;
    bool journal;
    double rates[MOST_ROUNDS]; /* jobs a second */
};

static char home[400]; /* a folder of our own; everything is in it */

/* -- files ----------------------------------------------------------------------------------- */

static void write_file(const char *name, const void *bytes, size_t size) {
    char path[500];
    snprintf(path, sizeof path, "%s/%s", home, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) {
        bench_die("%s: %s", path, strerror(errno));
    }
    close(fd);
}

static void remove_all(void) {
    char command[500];
    if (!home[0]) {
        return;
    }
    snprintf(command, sizeof command, "rm -rf '%s'", home);
    if (system(command) != 0) {
        fprintf(stderr, "bench-batch: %s is left\n", home);
    }
}

/* -- the job --------------------------------------------------------------------------------- */

/* What the kernel makes of each seed: computed here once, for as many seeds as there are. */
static void compute(uint32_t rounds, uint32_t results[SEEDS]) {
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        uint32_t value = seed;
        for (uint64_t i = 0; i < (uint64_t)rounds * 256; i++) {
            value = (value ^ (value >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
        }
        results[seed] = value;
    }
}

/* Time of one run on an idle stream, the least of a few. */
static uint64_t measure(bh_stream *stream, bh_kernel *kernel, bh_buffer *buffer, uint32_t rounds) {
    const uint32_t groups[3] = {1, 1, 1}, push[2] = {1, rounds};
    const bh_binding binding = bh_bind_write(0, buffer);
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        bh_verdict verdict = {.struct_size = sizeof verdict};
        bh_event *event = bench_launch(stream, kernel, groups, &binding, 1, push, sizeof push);
        (void)!bh_event_wait(event, BH_FOREVER);
        if (bh_event_verdict(event, &verdict) != BH_OK || verdict.status != BH_OK) {
            bench_die("a job by itself, %u rounds: %s", rounds, verdict.message);
        }
        /* Not from started_ns: a host that looks late sees start and end in one moment. */
        const uint64_t took = verdict.ended_ns - verdict.submitted_ns;
        least = took < least ? took : least;
        bh_event_release(event);
    }
    return least;
}

/* So many rounds take about a millisecond here. */
static uint32_t calibrate(bh_context *context, const struct options *options, uint64_t *out_ns) {
    bh_stream *stream =
        bench_stream(context, BENCH_WITH(bh_stream_options, .device = options->device));
    bh_kernel *kernel = bench_kernel(context, code, sizeof code, NULL);
    bh_buffer *buffer = bench_buffer(context, NULL, BH_MEMORY_HOST, 4);
    uint32_t rounds = 256;
    for (int i = 0; i < 6; i++) {
        *out_ns = measure(stream, kernel, buffer, rounds);
        double next = (double)rounds * (double)job_ns / (double)*out_ns;
        if (i < 5) {
            rounds = next < 1 ? 1 : next > LARGEST_LOOP ? LARGEST_LOOP : (uint32_t)next;
        }
    }
    bh_buffer_release(buffer);
    bh_kernel_release(kernel);
    bh_stream_release(stream);
    return rounds;
}

/* -- a batch --------------------------------------------------------------------------------- */

static void add_jobs(struct bhi_queue *queue, unsigned batch, unsigned jobs, uint32_t rounds) {
    struct bhi_job_spec *specs = bench_allocate(jobs, sizeof *specs);
    struct bhi_complaint complaint;
    char line[500];
    for (unsigned i = 0; i < jobs; i++) {
        const int length = snprintf(line, sizeof line,
                                    "{\"id\":\"%u\",\"kernel\":\"job.spv\",\"groups\":[1],\"out\":{"
                                    "\"0\":\"out-%u/%u.npy:u32[1]\"},"
                                    "\"push\":\"u32:%u,%u\"}",
                                    i, batch, i, i % SEEDS, rounds);
        if (!bhi_job_parse(line, (size_t)length, &specs[i], &complaint)) {
            bench_die("%s: %s", line, complaint.text);
        }
    }
    if (bhi_queue_add(queue, specs, jobs, &complaint) != BHI_QUEUE_OK) {
        bench_die("%s", complaint.text);
    }
    for (unsigned i = 0; i < jobs; i++) {
        bhi_job_spec_free(&specs[i]);
    }
    free(specs);
}

/* Every file has its number. They stay until the end: some file systems take longer to make files
 * when others have just been removed, and the second batch would pay for the first. */
static void check(unsigned batch, unsigned jobs, const uint32_t results[SEEDS]) {
    char path[500];
    for (unsigned i = 0; i < jobs; i++) {
        uint32_t value;
        struct stat status;
        snprintf(path, sizeof path, "%s/out-%u/%u.npy", home, batch, i);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) != 0 ||
            pread(fd, &value, sizeof value, status.st_size - 4) != 4) {
            bench_die("%s: %s", path, strerror(errno));
        }
        close(fd);
        if (value != results[i % SEEDS]) {
            bench_die("job %u has computed %u, not %u", i, value, results[i % SEEDS]);
        }
    }
}

/* Jobs a second, from the first one taken until all is durable. */
static double run(bh_context *context, const struct options *options, unsigned batch, bool journal,
                  uint32_t rounds) {
    struct bhi_complaint complaint;
    struct bhi_queue *queue;
    struct bhi_queue_counts counts;
    char state[500], out[500];
    snprintf(state, sizeof state, "%s/state-%u", home, batch);
    snprintf(out, sizeof out, "%s/out-%u", home, batch);
    if (mkdir(out, 0700) != 0) {
        bench_die("%s: %s", out, strerror(errno));
    }
    const struct bhi_queue_options queue_options = {.folder = journal ? state : NULL,
                                                    .jobs_path = "bench"};
    const struct bhi_runner_options runner_options = {
        .context = context, .streams = options->streams, .device = options->device};
    if (bhi_queue_open(&queue_options, &queue, &complaint) != BHI_QUEUE_OK) {
        bench_die("%s", complaint.text);
    }
    add_jobs(queue, batch, options->jobs, rounds);
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    const uint64_t began = bhi_clock_ns();
    if (bhi_runner_run(queue, &runner_options, &complaint) != BHI_RUNNER_FINISHED) {
        bench_die("the batch was not finished: %s", complaint.text);
    }
    if (journal && !bhi_queue_flush(queue)) {
        bench_die("the journal could not be written");
    }
    const uint64_t took = bhi_clock_ns() - began;
    bhi_queue_counts(queue, &counts);
    if (counts.of[BHI_JOB_DONE] != options->jobs) {
        bench_die("%llu of %u jobs are done", (unsigned long long)counts.of[BHI_JOB_DONE],
                  options->jobs);
    }
    if (!bhi_queue_close(queue)) {
        bench_die("the journal could not be closed");
    }
    return (double)options->jobs / ((double)took / 1e9);
}

/* -- the numbers ----------------------------------------------------------------------------- */

static double median(const double *values, unsigned count) {
    double sorted[MOST_ROUNDS];
    memcpy(sorted, values, count * sizeof *values);
    bhi_sort_doubles(sorted, count);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* Returns whether the target is met. Pairs of one round are compared: what else the machine does
 * hits both. */
static bool report(const struct options *options, const struct side sides[2], uint64_t alone_ns) {
    double ratios[MOST_ROUNDS];
    for (unsigned i = 0; i < options->rounds; i++) {
        ratios[i] = sides[1].rates[i] / sides[0].rates[i];
    }
    const double ratio = median(ratios, options->rounds);
    const double without = median(sides[0].rates, options->rounds);
    const double with = median(sides[1].rates, options->rounds);
    if (options->json) {
        json_t *object = json_pack(
            "{s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:b}", "benchmark", "batch",
            "schema", 1, "jobs", (int)options->jobs, "rounds", (int)options->rounds, "streams",
            (int)options->streams, "job_ms", (double)alone_ns / 1e6, "without_journal", without,
            "with_journal", with, "ratio", ratio, "target_ratio", target, "ok", ratio >= target);
        if (!object || json_dumpf(object, stdout, JSON_REAL_PRECISION(6)) != 0) {
            bench_die("out of memory");
        }
        putchar('\n');
        json_decref(object);
        return ratio >= target;
    }
    printf("%u jobs of %.2f ms on %u streams, %u rounds, medians\n", options->jobs,
           (double)alone_ns / 1e6, options->streams, options->rounds);
    for (int i = 0; i < 2; i++) {
        printf("%-18s %8.0f jobs/s\n", sides[i].what, i ? with : without);
    }
    printf("ratio              %8.3f (goal: at least %.2f)\n", ratio, target);
    return ratio >= target;
}

/* -- arguments ------------------------------------------------------------------------------- */

static const char usage[] =
    "Usage: bench-batch [--jobs N] [--rounds N] [--streams N] [--device S] [--folder DIR]\n"
    "                   [--quick] [--json] [--strict]\n\n"
    "Runs N jobs (10000) of about 1 ms each through bulkhead batch's runner, in turns with and\n"
    "without a journal. Files go to a folder of their own in DIR ($TMPDIR, or /tmp): it should be\n"
    "on a disk. --strict: exit status 3 where the goal is missed.\n";

static struct options parse(int argc, char **argv) {
    struct options options = {.jobs = 10000, .rounds = 3, .streams = 2};
    bool quick = false;
    const struct bench_option accepted[] = {
        {"--quick", .flag = &quick},
        {"--json", .flag = &options.json},
        {"--strict", .flag = &options.strict},
        {"--jobs", .number = &options.jobs, .least = 1, .most = 1000000},
        {"--rounds", .number = &options.rounds, .least = 1, .most = MOST_ROUNDS},
        {"--streams", .number = &options.streams, .least = 1, .most = 64},
        {"--device", .text = &options.device},
        {"--folder", .text = &options.folder},
        {0}};
    bench_parse(argc, argv, accepted, usage);
    options.jobs = quick ? 200 : options.jobs;
    options.rounds = quick ? 1 : options.rounds;
    return options;
}

int main(int argc, char **argv) {
    const struct options options = parse(argc, argv);
    struct side sides[2] = {{.what = "without a journal"},
                            {.what = "with a journal", .journal = true}};
    struct rlimit limit;
    uint64_t alone_ns;

    const char *parent = options.folder ? options.folder : getenv("TMPDIR");
    snprintf(home, sizeof home, "%.300s/bench-batch-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(home) || chdir(home) != 0) {
        bench_die("%s: %s", home, strerror(errno));
    }
    atexit(remove_all);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    write_file("job.spv", code, sizeof code);
    bh_context *context = bench_context(NULL);
    const uint32_t rounds = calibrate(context, &options, &alone_ns);
    uint32_t results[SEEDS];
    compute(rounds, results);
    for (unsigned i = 0; i < options.rounds; i++) {
        for (int k = 0; k < 2; k++) {
            struct side *side = &sides[(i + (unsigned)k) % 2]; /* the other one first, next time */
            const unsigned batch = 2 * i + (unsigned)k;
            side->rates[i] = run(context, &options, batch, side->journal, rounds);
            check(batch, options.jobs, results);
        }
    }
    bh_context_destroy(context);
    const bool met = report(&options, sides, alone_ns);
    return options.strict && !met ? 3 : 0;
}
