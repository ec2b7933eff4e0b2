/* Random programs on real workers that are really killed, judged by an oracle that knows the rules
 * only (E1–E16, B5): what is READY is bit-exact and hangs on READY work alone; what is poisoned
 * has a cause, or a path of declared dependencies to one; everything else is READY; nothing runs
 * twice; everything ends in bounded time.
 *
 * $BULKHEAD_SEED runs one group of programs again, with the seed that a failure printed. Processes
 * die at moments that no seed decides: the same programs, not the same history.
 */
#include "random_program.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PROGRAMS 20 /* in a group */

static struct rp_group group;
static struct rp_program program;

/* The workers' own deaths: at this step, of this. In groups with an odd seed. A worker that does
 * not live to the step does not meet its fault. */
static const char *make_faults(uint64_t seed) {
    static const char *const points[] = {"started",      "submitted", "before_record",
                                         "after_record", "attach",    "kernel_create"};
    static const char *const actions[] = {"segv",  "abort", "kill",    "sigsys",
                                          "exit0", "exit7", "garbage", "stop"};
    static char text[1024];
    uint64_t random = seed ^ 0xfa17;
    int length = 0;
    if (seed % 2 == 0) {
        return NULL;
    }
    for (unsigned i = 0; i < 12; i++) {
        const char *point = points[rp_below(&random, BHT_COUNT(points))];
        bool early = point[0] == 'a' && point[1] == 't';
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%s?%u:%s:%u=%s", i ? "," : "",
                     1 + i * 2 + rp_below(&random, 2), point, 1 + rp_below(&random, early ? 6 : 60),
                     actions[rp_below(&random, BHT_COUNT(actions))]);
    }
    return text;
}

static void open_group(uint64_t seed) {
    static const uint64_t deadlines_ms[RP_STREAMS] = {1500, 800, 400, 300};
    group = (struct rp_group){.seed = seed, .random = seed, .faults = make_faults(seed)};
    bh_context_options options = fx_options();
    options.spares = 2;
    options.restart_budget = 1000000; /* killed while idle, again and again */
    options.quarantine_ns = BH_OFF;   /* what dies here does so by our hand, not by its kernels */
    group.context = fx_context_with(options, group.faults);
    /* Told to end at their deadlines in one group, killed in the next. */
    bh_kernel *(*kernel)(bh_context *, const char *) = seed % 2 ? fx_kernel : fx_kernel_trusted;
    group.mix = kernel(group.context, "mix");
    group.derive = kernel(group.context, "derive");
    for (unsigned i = 0; i < RP_STREAMS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        group.deadlines_ns[i] = deadlines_ms[i] * FX_MS * (BHT_ASAN || BHT_TSAN ? 4 : 1);
        /* In every third group one is strict: what fails there fails all that comes after. */
        group.strict[i] = i == 1 && seed % 3 == 0;
        bh_stream_options of_stream = fx_stream_options();
        of_stream.name = name;
        of_stream.deadline_ns = group.deadlines_ns[i];
        of_stream.strict = group.strict[i];
        group.streams[i] = fx_stream_with(group.context, of_stream);
    }
    for (unsigned i = 0; i < RP_BUFFERS; i++) {
        group.buffers[i] = fx_buffer(group.context, 4 * RP_WORDS);
        group.raw[i] = fx_pointer(group.buffers[i]);
    }
}

static void add_to(struct rp_group *total) {
    total->submissions += group.submissions;
    total->ready += group.ready;
    total->own_causes += group.own_causes;
    total->inherited += group.inherited;
    total->lost += group.lost;
    total->misbound += group.misbound;
    total->raw_checks += group.raw_checks;
    total->reads += group.reads;
    total->hit_count += group.hit_count;
    total->zygote_kills += group.zygote_kills;
    for (size_t i = 0; i < BHT_COUNT(total->by_status); i++) {
        total->by_status[i] += group.by_status[i];
    }
}

/* Whatever it is that fails, or hangs. */
static void say_which(void) {
    fprintf(stderr, "to run it again: BULKHEAD_SEED=%llu; it was program %u of %u, step %u\n",
            (unsigned long long)group.seed, program.index, PROGRAMS, program.step_count);
    fx_describe();
}

static void run_group(uint64_t seed, unsigned programs, struct rp_group *total) {
    open_group(seed);
    for (unsigned i = 0; i < programs; i++) {
        program.index = i;
        rp_run(&group, &program);
        rp_judge(&group, &program);
        rp_release(&program);
    }
    fx_release_all();
    add_to(total);
}

static void report(const struct rp_group *total, unsigned programs) {
    printf("%u programs, %lu submissions: %lu READY, %lu own causes, %lu inherited, %lu lost; "
           "%zu signals, %u zygotes killed; %lu reads, %lu buffers compared;",
           programs, total->submissions, total->ready, total->own_causes, total->inherited,
           total->lost, total->hit_count, total->zygote_kills, total->reads, total->raw_checks);
    for (size_t i = 32; i < BHT_COUNT(total->by_status); i++) {
        if (total->by_status[i]) {
            printf(" %s %lu", bh_status_name((bh_status)i), total->by_status[i]);
        }
    }
    printf("\n");
    fflush(stdout);
}

TEST_WITH(programs_with_real_deaths, 400, 0) {
    static struct rp_group total;
    const char *given = getenv("BULKHEAD_SEED");
    /* Six: with faults and without, strict and not, each with each. */
    const bool sanitized = BHT_TSAN || BHT_ASAN;
    unsigned groups = bht_nightly() ? 200 : sanitized ? 2 : 6;
    /* The default run is the same each time; each night is another. Groups 2 and 6 have no faults,
     * groups 3 and 5 have some, groups 3 and 6 have a strict stream. */
    uint64_t first = bht_nightly() ? (uint64_t)time(NULL) * 1000 : BHT_TSAN ? 5 : BHT_ASAN ? 2 : 1;
    if (given) {
        first = strtoull(given, NULL, 10);
        groups = 1;
    }
    for (unsigned i = 0; i < groups; i++) {
        run_group(first + i, PROGRAMS, &total);
    }
    report(&total, groups * PROGRAMS);
    if (given) {
        return;
    }
    /* The programs did what they are for. */
    BHT_GT(total.ready, total.submissions / 10);
    BHT_GT(total.inherited, 0);
    BHT_GT(total.reads, 0);
    BHT_GT(total.by_status[BH_CANCELLED], 0);
    BHT_GT(total.by_status[BH_WORKER_SIGNAL], 0);
    BHT_GT(total.by_status[BH_BINDING_MISMATCH], 0);
}

int main(int argc, char **argv) {
    bht_describe_with(say_which);
    return bht_main(argc, argv, NULL, 0);
}
