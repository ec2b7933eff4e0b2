/* bench-dispatch: what isolation costs. One run measures in-process Vulkan and the library on the
 * same kernels, in turns, because a machine's mood changes within seconds. */
#include "bench.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MAX_ROUNDS 101u
#define MIB        (1024.0 * 1024.0)

enum side_index { IN_PROCESS, BULKHEAD, SIDES };

/* One number a round and side; what is shown is the median over rounds. */
enum measure {
    ROUND_TRIP_P50,
    ROUND_TRIP_P99,
    POLLING_P50, /* in-process only */
    POLLING_P99,
    RESULT_P50,
    RESULT_POLLING_P50, /* in-process only */
    COMMANDS_EMPTY,
    COMMANDS_EMPTY_RECORDED,
    COMMANDS_COUNT,
    SUBMISSIONS_EMPTY,
    SUBMISSIONS_COUNT,
    SAXPY_COLD,
    SAXPY_WARM,
    MEASURES
};

struct row {
    const char *id;    /* stable, for --json */
    const char *what;  /* for a person */
    double in_process; /* ns; negative: not measured, or there is no such thing. Of a death: the
                        * kernel's own news of it. */
    double polling;    /* ns, where the in-process side polls instead of sleeping; negative: none */
    double bulkhead;   /* ns; negative likewise */
    double target;     /* bound of the ratio; 0: none */
};

static uint64_t samples[SIDES][MEASURES][MAX_ROUNDS];

uint64_t bench_anonymous_bytes(int pid) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    unsigned long long kib = 0;
    if (!file) {
        bench_die("%s: %s", path, strerror(errno));
    }
    while (fgets(line, sizeof line, file) && sscanf(line, "RssAnon: %llu", &kib) != 1) {
    }
    fclose(file);
    return (uint64_t)kib * 1024;
}

/* -- one round of one side ------------------------------------------------------------------ */

static void check_count(const struct bench_side *side, const char *what, uint32_t wanted) {
    uint32_t count = side->take_count(side->self);
    if (count != wanted) {
        bench_die("%s, %s: the counter says %u, must be %u", side->name, what, count, wanted);
    }
}

/* Small integers: the result is exact, whatever the device does with rounding. */
static void fill_saxpy(float *x, float *y, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)((i + seed) % 1021);
        y[i] = (float)((i * 7 + seed) % 509);
    }
}

void bench_check_saxpy(const char *side, const struct bench_saxpy *work) {
    for (size_t i = 0; i < work->count; i++) {
        float wanted = work->a * work->x[i] + work->y[i];
        if (work->out[i] != wanted) {
            bench_die("%s, saxpy: element %zu is %g, must be %g", side, i, (double)work->out[i],
                      (double)wanted);
        }
    }
}

static uint64_t run_saxpy(const struct bench_side *side, const struct bench_saxpy *work,
                          bool cold) {
    memset(work->out, 0xff, work->count * sizeof *work->out);
    uint64_t time = side->saxpy(side->self, work, cold);
    bench_check_saxpy(side->name, work);
    return time;
}

/* What makes a run slow is the machine: threads that lie badly on the processors, a virtual machine
 * that is held back after a burst. Rows that have a target take the fastest of a few in each round.
 */
#define REPEATS 5

static void measure_dispatches(const struct bench_options *options, const struct bench_side *side,
                               enum side_index index, unsigned round, uint64_t *scratch) {
    uint64_t(*out)[MAX_ROUNDS] = samples[index];
    uint32_t batch = options->batch;
    side->round_trip(side->self, BENCH_EMPTY, scratch, options->round_trips);
    out[ROUND_TRIP_P50][round] = bench_quantile(scratch, options->round_trips, 500);
    out[ROUND_TRIP_P99][round] = bench_quantile(scratch, options->round_trips, 990);
    side->round_trip(side->self, BENCH_COUNT, scratch, options->round_trips);
    out[RESULT_P50][round] = bench_quantile(scratch, options->round_trips, 500);
    if (side->round_trip_polling) {
        side->round_trip_polling(side->self, BENCH_EMPTY, scratch, options->round_trips);
        out[POLLING_P50][round] = bench_quantile(scratch, options->round_trips, 500);
        out[POLLING_P99][round] = bench_quantile(scratch, options->round_trips, 990);
        side->round_trip_polling(side->self, BENCH_COUNT, scratch, options->round_trips);
        out[RESULT_POLLING_P50][round] = bench_quantile(scratch, options->round_trips, 500);
    }
    side->take_count(side->self);
    uint64_t times[REPEATS];
    for (size_t i = 0; i < REPEATS; i++) {
        times[i] = side->commands(side->self, BENCH_EMPTY, batch, false);
    }
    out[COMMANDS_EMPTY][round] = bench_quantile(times, REPEATS, 0);
    out[COMMANDS_EMPTY_RECORDED][round] =
        side->commands(side->self, BENCH_EMPTY, batch, index == IN_PROCESS);
    out[COMMANDS_COUNT][round] = side->commands(side->self, BENCH_COUNT, batch, false);
    check_count(side, "commands in one submission", batch);
    for (size_t i = 0; i < REPEATS; i++) {
        times[i] = side->submissions(side->self, BENCH_EMPTY, batch);
    }
    out[SUBMISSIONS_EMPTY][round] = bench_quantile(times, REPEATS, 0);
    out[SUBMISSIONS_COUNT][round] = side->submissions(side->self, BENCH_COUNT, batch);
    check_count(side, "submissions", batch);
}

static void measure_saxpy(const struct bench_side *side, enum side_index index, unsigned round,
                          const struct bench_saxpy *work) {
    samples[index][SAXPY_COLD][round] = run_saxpy(side, work, true);
    samples[index][SAXPY_WARM][round] = run_saxpy(side, work, false);
}

/* Compiles the kernels, touches the memory: nothing of it belongs into the numbers. */
static void warm_up(const struct bench_options *options, const struct bench_side *side,
                    const struct bench_saxpy *work, uint64_t *scratch) {
    side->round_trip(side->self, BENCH_EMPTY, scratch, options->round_trips / 10 + 1);
    side->commands(side->self, BENCH_COUNT, options->batch, false);
    side->submissions(side->self, BENCH_EMPTY, options->batch);
    check_count(side, "warm-up", options->batch);
    run_saxpy(side, work, false);
}

/* -- the run -------------------------------------------------------------------------------- */

static double median(enum side_index index, enum measure measure, unsigned rounds, bool measured) {
    return measured ? (double)bench_quantile(samples[index][measure], rounds, 500) : -1;
}

/* What the in-process side takes when it polls; negative: there is no such number. */
static double polling_of(enum measure measure, const struct bench_options *options) {
    const enum measure polling = measure == ROUND_TRIP_P50   ? POLLING_P50
                                 : measure == ROUND_TRIP_P99 ? POLLING_P99
                                 : measure == RESULT_P50     ? RESULT_POLLING_P50
                                                             : MEASURES;
    return polling == MEASURES ? -1
                               : median(IN_PROCESS, polling, options->rounds, options->in_process);
}

static size_t add_rows(const struct bench_options *options, struct row *rows) {
    static const struct {
        enum measure measure;
        const char *id, *what;
        double target;
    } ROWS[] = {
        {ROUND_TRIP_P50, "round_trip_p50", "empty dispatch, round trip, p50", 1.25},
        {ROUND_TRIP_P99, "round_trip_p99", "empty dispatch, round trip, p99", 0},
        {RESULT_P50, "result_p50", "a dispatch, and its result read, p50", 0},
        {COMMANDS_EMPTY, "commands", "dispatches in one submission, recorded each time", 1.2},
        {COMMANDS_EMPTY_RECORDED, "commands_prerecorded", "  the same, in-process prerecorded", 0},
        {COMMANDS_COUNT, "commands_dependent", "  the same, each depends on the one before", 0},
        {SUBMISSIONS_EMPTY, "submissions", "submissions, one wait", 1.0},
        {SUBMISSIONS_COUNT, "submissions_dependent", "  the same, each depends on the one before",
         0},
        {SAXPY_WARM, "saxpy_warm", "saxpy end to end, buffers kept", 1.1},
        {SAXPY_COLD, "saxpy_cold", "saxpy end to end, buffers made for it", 0},
    };
    static char texts[sizeof ROWS / sizeof ROWS[0]][80];
    size_t count = sizeof ROWS / sizeof ROWS[0];
    for (size_t i = 0; i < count; i++) {
        const char *prefix = "";
        char number[32];
        if (strstr(ROWS[i].id, "saxpy")) {
            snprintf(number, sizeof number, "%.0f MiB ",
                     (double)(options->saxpy_floats * sizeof(float)) / MIB);
            prefix = number;
        } else if (ROWS[i].measure == COMMANDS_EMPTY || ROWS[i].measure == SUBMISSIONS_EMPTY) {
            snprintf(number, sizeof number, "%u ", options->batch);
            prefix = number;
        }
        snprintf(texts[i], sizeof texts[i], "%s%s", prefix, ROWS[i].what);
        rows[i] = (struct row){
            .id = ROWS[i].id,
            .what = texts[i],
            .in_process = median(IN_PROCESS, ROWS[i].measure, options->rounds, options->in_process),
            .polling = polling_of(ROWS[i].measure, options),
            .bulkhead = median(BULKHEAD, ROWS[i].measure, options->rounds, options->bulkhead),
            .target = ROWS[i].target,
        };
    }
    return count;
}

static size_t add_death_rows(const struct bench_options *options, struct row *rows) {
    struct bench_deaths deaths = {.count = options->deaths};
    deaths.idle = bench_allocate(deaths.count, sizeof *deaths.idle);
    deaths.pidfd = bench_allocate(deaths.count, sizeof *deaths.pidfd);
    deaths.waiter = bench_allocate(deaths.count, sizeof *deaths.waiter);
    deaths.restart = bench_allocate(deaths.count, sizeof *deaths.restart);
    bench_measure_deaths(options, &deaths);
    const struct {
        uint64_t *floor, *values; /* |floor|: until the kernel's own pidfd says it, or NULL */
        unsigned permille;
        const char *id, *what;
        double target;
    } ROWS[] = {
        {deaths.pidfd, deaths.waiter, 500, "death_waiter_p50",
         "death in mid-job: a pidfd says so, the waiter knows, p50", 2.0},
        {deaths.pidfd, deaths.waiter, 990, "death_waiter_p99", "  the same, p99", 0},
        {NULL, deaths.idle, 500, "death_idle_p50", "death of an idle worker until it is seen, p50",
         0},
        {NULL, deaths.idle, 990, "death_idle_p99", "  the same, p99", 0},
        {NULL, deaths.restart, 500, "death_next_good_p50",
         "death in mid-job until the next good result", 0},
    };
    size_t count = sizeof ROWS / sizeof ROWS[0];
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct row){
            .id = ROWS[i].id,
            .what = ROWS[i].what,
            .in_process = ROWS[i].floor ? (double)bench_quantile(ROWS[i].floor, deaths.count,
                                                                 ROWS[i].permille)
                                        : -1,
            .polling = -1,
            .bulkhead = (double)bench_quantile(ROWS[i].values, deaths.count, ROWS[i].permille),
            .target = ROWS[i].target,
        };
    }
    free(deaths.pidfd);
    free(deaths.idle);
    free(deaths.waiter);
    free(deaths.restart);
    return count;
}

/* The library must not have a second copy of the data, neither in the worker nor here: a bounce
 * buffer would be anonymous memory as large as an array. */
static void check_no_copy(const struct bench_options *options, uint64_t host_before,
                          uint64_t worker_before, int worker) {
    uint64_t limit = options->saxpy_floats * sizeof(float) / 2;
    uint64_t host = bench_anonymous_bytes(getpid()), there = bench_anonymous_bytes(worker);
    /* A GPU reads its inputs through a copy, so that nobody can write them. */
    uint64_t input = options->processor ? 0 : options->saxpy_floats * sizeof(float);
    if (host > host_before + limit || there > worker_before + limit + input) {
        bench_die("a copy of the data: anonymous memory grew from %.1f to %.1f MiB here and from "
                  "%.1f to %.1f MiB in the worker",
                  (double)host_before / MIB, (double)host / MIB, (double)worker_before / MIB,
                  (double)there / MIB);
    }
}

static size_t measure(struct bench_options *options, struct bench_machine *machine,
                      struct row *rows) {
    struct bench_side sides[SIDES];
    bool runs[SIDES] = {options->in_process, options->bulkhead};
    if (options->bulkhead) {
        bench_bulkhead_choose(options, machine);
        bench_bulkhead_side(options, &sides[BULKHEAD]);
    }
    if (options->in_process) {
        bench_vulkan_side(options, &sides[IN_PROCESS], machine);
    }
    uint64_t *scratch = bench_allocate(options->round_trips, sizeof *scratch);
    float *x = bench_allocate(options->saxpy_floats, sizeof *x);
    float *y = bench_allocate(options->saxpy_floats, sizeof *y);
    const struct bench_saxpy work = {.a = 3.0f,
                                     .x = x,
                                     .y = y,
                                     .out = bench_allocate(options->saxpy_floats, sizeof(float)),
                                     .count = options->saxpy_floats};
    fill_saxpy(x, y, work.count, 0);
    memset(work.out, 0, work.count * sizeof *work.out);
    if (options->in_process) {
        warm_up(options, &sides[IN_PROCESS], &work, scratch);
    }
    int worker = options->bulkhead ? bench_bulkhead_worker_pid(&sides[BULKHEAD]) : 0;
    uint64_t host_before = bench_anonymous_bytes(getpid());
    uint64_t worker_before = worker > 0 ? bench_anonymous_bytes(worker) : 0;
    if (options->bulkhead) {
        warm_up(options, &sides[BULKHEAD], &work, scratch);
        check_no_copy(options, host_before, worker_before, worker);
    }
    for (unsigned round = 0; round < options->rounds; round++) {
        fill_saxpy(x, y, work.count, round);
        for (unsigned turn = 0; turn < SIDES; turn++) {
            /* A B, B A, A B: neither side always comes after the other. */
            enum side_index index = (turn + round) % SIDES;
            if (runs[index]) {
                measure_dispatches(options, &sides[index], index, round, scratch);
            }
        }
        for (unsigned turn = 0; turn < SIDES; turn++) {
            enum side_index index = (turn + round) % SIDES;
            if (runs[index]) {
                measure_saxpy(&sides[index], index, round, &work);
            }
        }
    }
    for (unsigned index = 0; index < SIDES; index++) {
        if (runs[index]) {
            sides[index].destroy(sides[index].self);
        }
    }
    free(scratch);
    free(x);
    free(y);
    free(work.out);
    size_t count = add_rows(options, rows);
    if (options->bulkhead && options->deaths > 0) {
        count += add_death_rows(options, rows + count);
    }
    return count;
}

/* -- what is printed ------------------------------------------------------------------------ */

/* Against the better of the two in-process numbers; negative: none. */
static double ratio_of(const struct row *row) {
    const bool polls = row->polling > 0 && row->polling < row->in_process;
    const double better = polls ? row->polling : row->in_process;
    return better > 0 && row->bulkhead >= 0 ? row->bulkhead / better : -1;
}

/* 1 within its target, 0 over, -1 no target or not measured. */
static int row_holds(const struct row *row) {
    double value = ratio_of(row);
    if (row->target <= 0 || value < 0) {
        return -1;
    }
    return value <= row->target;
}

static void show_time(char *out, size_t size, double ns) {
    if (ns < 0) {
        snprintf(out, size, "-");
    } else if (ns < 1e6) {
        snprintf(out, size, "%.1f us", ns / 1e3);
    } else {
        snprintf(out, size, "%.2f ms", ns / 1e6);
    }
}

static void print_table(const struct bench_options *options, const struct bench_machine *machine,
                        const struct row *rows, size_t count) {
    printf("device %s, driver %s, %ld processors\n", machine->device, machine->driver,
           sysconf(_SC_NPROCESSORS_ONLN));
    printf("%u rounds, interleaved; medians over rounds\n\n", options->rounds);
    printf("%-58s %12s %12s %12s %7s %10s  %s\n", "what", "in-process", "polling", "bulkhead",
           "ratio", "target", "");
    for (size_t i = 0; i < count; i++) {
        char in_process[32], polling[32], bulkhead[32], ratio[32] = "-", target[32] = "-";
        show_time(in_process, sizeof in_process, rows[i].in_process);
        show_time(polling, sizeof polling, rows[i].polling);
        show_time(bulkhead, sizeof bulkhead, rows[i].bulkhead);
        if (ratio_of(&rows[i]) >= 0) {
            snprintf(ratio, sizeof ratio, "%.2f", ratio_of(&rows[i]));
        }
        if (rows[i].target > 0) {
            snprintf(target, sizeof target, "%.2f", rows[i].target);
        }
        int holds = row_holds(&rows[i]);
        printf("%-58s %12s %12s %12s %7s %10s  %s\n", rows[i].what, in_process, polling, bulkhead,
               ratio, target,
               holds < 0 ? ""
               : holds   ? "ok"
                         : "over");
    }
}

static json_t *number(double value) {
    return value < 0 ? json_null() : json_real(value);
}

static void print_json(const struct bench_options *options, const struct bench_machine *machine,
                       const struct row *rows, size_t count) {
    struct utsname system;
    char version[48];
    json_t *array = json_array();
    snprintf(version, sizeof version, "%d.%d.%d", BH_VERSION_MAJOR, BH_VERSION_MINOR,
             BH_VERSION_PATCH);
    for (size_t i = 0; i < count; i++) {
        const int holds = row_holds(&rows[i]);
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", rows[i].id, "what",
                             rows[i].what, "in_process_ns", number(rows[i].in_process),
                             "polling_ns", number(rows[i].polling), "bulkhead_ns",
                             number(rows[i].bulkhead), "ratio", number(ratio_of(&rows[i])),
                             "target_ratio", number(rows[i].target > 0 ? rows[i].target : -1), "ok",
                             holds < 0 ? json_null() : json_boolean(holds)));
    }
    json_t *object = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:o}", "benchmark", "dispatch", "schema", 1,
        "version", version, "device", machine->device, "driver", machine->driver, "kernel",
        uname(&system) == 0 ? system.release : "", "processors", (int)sysconf(_SC_NPROCESSORS_ONLN),
        "rounds", (int)options->rounds, "quick", options->quick, "rows", array);
    if (!object || json_dumpf(object, stdout, JSON_REAL_PRECISION(10)) != 0) {
        bench_die("the object cannot be printed");
    }
    printf("\n");
    json_decref(object);
}

/* Returns how many rows are over their target. */
static size_t report(const struct bench_options *options, const struct bench_machine *machine,
                     const struct row *rows, size_t count) {
    if (options->json) {
        print_json(options, machine, rows, count);
    } else {
        print_table(options, machine, rows, count);
    }
    size_t over = 0;
    for (size_t i = 0; i < count; i++) {
        over += row_holds(&rows[i]) == 0;
    }
    return over;
}

/* -- options -------------------------------------------------------------------------------- */

static const char USAGE[] =
    "Usage: bench-dispatch [OPTION]...\n"
    "Measures in-process Vulkan and libbulkhead on the same kernels, in turns, and prints ratios.\n"
    "\n"
    "  --quick             few rounds: checks that it works, the numbers are rough\n"
    "  --rounds N          rounds of both sides (default 9, --quick 3; at most 101)\n"
    "  --deaths N          workers to kill for each kind of death (default 50, --quick 5; 0: "
    "none)\n"
    "  --only SIDE         in-process or bulkhead\n"
    "  --device SELECTOR   as `bulkhead devices` shows them (default: the library's)\n"
    "  --worker PATH       the bulkhead-worker executable\n"
    "  --json              one JSON object instead of the table\n"
    "  --strict            exit status 3 where a target is missed\n"
    "  --help\n"
    "\n"
    "Exit status: 0 measured, 1 a wrong result or a failed call, 2 bad usage, 3 see --strict.\n"
    "\n"
    "Examples:\n"
    "  bench-dispatch --quick\n"
    "  bench-dispatch --json --rounds 21 > dispatch.json\n"
    "  bench-dispatch --only in-process --device nvidia\n";

static void parse(int argc, char **argv, struct bench_options *options) {
    const char *only = NULL;
    options->deaths = UINT32_MAX;
    const struct bench_option accepted[] = {
        {"--quick", .flag = &options->quick},
        {"--rounds", .number = &options->rounds, .least = 1, .most = MAX_ROUNDS},
        {"--deaths", .number = &options->deaths, .most = 1000000},
        {"--only", .text = &only},
        {"--device", .text = &options->device},
        {"--worker", .text = &options->worker},
        {"--json", .flag = &options->json},
        {"--strict", .flag = &options->strict},
        {0}};
    bench_parse(argc, argv, accepted, USAGE);
    options->bulkhead = !only || strcmp(only, "bulkhead") == 0;
    options->in_process = !only || strcmp(only, "in-process") == 0;
    if (!options->in_process && !options->bulkhead) {
        bench_bad_usage(only, USAGE);
    }
    options->rounds = options->rounds ? options->rounds : options->quick ? 3 : 9;
    options->deaths = options->deaths != UINT32_MAX ? options->deaths : options->quick ? 5 : 50;
    options->round_trips = options->quick ? 300 : 2000;
    options->batch = 1000;
    options->saxpy_floats = 16u * 1024 * 1024;
}

int main(int argc, char **argv) {
    struct bench_options options = {.rounds = 0};
    struct bench_machine machine = {.device = ""};
    struct row rows[MEASURES + 8];
    parse(argc, argv, &options);
    size_t count = measure(&options, &machine, rows);
    size_t over = report(&options, &machine, rows, count);
    return options.strict && over > 0 ? 3 : 0;
}
