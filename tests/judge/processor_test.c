/* On which processors runs are timed. The last tests have real workers. In place of a round, all
 * that would run in it are looked at in /proc; its times are made up. */
#include "judge/time/processor.h"

#include "harness.h"

#include <bulkhead/stats.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "judge/time/measure.h"

/* -- the choice ----------------------------------------------------------------------------------
 */

static void write_stat(const char *cpu1, const char *cpu3) {
    FILE *file = fopen("stat", "w");
    BHT_TRUE(file);
    fprintf(file,
            "cpu  900 0 90 90000 900 9 9 0 0 0\n"
            "cpu0 100 0 10 1000 50 1 1 0 0 0\n"
            "cpu1 %s 0 0 0 0 0\n"
            "cpu3 %s 0 0 0 0 0\n"
            "intr 9 9 9 9 9\n",
            cpu1, cpu3);
    BHT_EQ(fclose(file), 0);
}

static cpu_set_t set_of(const int *numbers, size_t count) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < count; i++) {
        CPU_SET((unsigned)numbers[i], &set);
    }
    return set;
}

/* Waiting for a disk is idle, too. */
TEST(the_idlest_is_found) {
    const cpu_set_t all = set_of((const int[]){0, 1, 2, 3}, 4), none = set_of(NULL, 0);
    const cpu_set_t first = set_of((const int[]){0, 2}, 2);
    struct bhi_idle before, after, nothing;
    write_stat("100 0 10 1000 50", "100 0 10 900 50");
    bhi_idle_read("stat", &before);
    BHT_EQ(before.of[0], 1050);
    BHT_EQ(before.of[2], 0);
    BHT_EQ(before.of[3], 950);
    write_stat("100 0 10 1003 57", "100 0 14 906 50");
    bhi_idle_read("stat", &after);
    BHT_EQ(remove("stat"), 0);
    BHT_EQ(bhi_idle_most(&all, &before, &after), 1);
    BHT_EQ(bhi_idle_most(&first, &before, &after), 2); /* both were busy: the last */
    BHT_EQ(bhi_idle_most(&none, &before, &after), -1);
    BHT_EQ(bhi_idle_most(&all, &after, &before), 3); /* numbers that go back say nothing */
    bhi_idle_read("stat", &nothing);
    BHT_EQ(nothing.of[0], 0);
}

/* The first |count| of the processors that this process may use; all, if there are fewer. */
static cpu_set_t first_of(const cpu_set_t *may, int count) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < CPU_SETSIZE && CPU_COUNT(&set) < count; i++) {
        if (CPU_ISSET(i, may)) {
            CPU_SET(i, &set);
        }
    }
    return set;
}

static cpu_set_t ours(void) {
    cpu_set_t set;
    BHT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

static void be_on(const cpu_set_t *set) {
    BHT_EQ(sched_setaffinity(0, sizeof *set, set), 0);
}

/* In a network of its own no other judge has claimed anything. Where the kernel refuses that,
 * another one may have, and then less is known. */
TEST(two_judges_choose_two) {
    const bool own = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    const cpu_set_t all = ours(), two = first_of(&all, 2);
    const int count = CPU_COUNT(&two);
    struct bhi_processor a, b, c;
    be_on(&two);
    bhi_processor_choose(&a);
    bhi_processor_choose(&b);
    bhi_processor_choose(&c); /* there is no other left */
    BHT_EQ(a.count, count);
    BHT_TRUE(a.chosen && CPU_ISSET(a.chosen - 1, &two));
    BHT_TRUE(b.chosen && CPU_ISSET(b.chosen - 1, &two));
    BHT_TRUE(c.chosen && CPU_ISSET(c.chosen - 1, &two));
    BHT_TRUE(!own || (a.claim >= 0 && (count == 1 || b.claim >= 0)));
    BHT_TRUE(a.claim < 0 || b.claim < 0 || a.chosen != b.chosen);
    BHT_EQ(c.claim, -1);
    const uint32_t freed = a.chosen;
    bhi_processor_release(&a);
    BHT_EQ(a.chosen, 0);
    bhi_processor_choose(&a);
    BHT_TRUE(!own || (a.claim >= 0 && a.chosen == freed));
    bhi_processor_release(&a);
    bhi_processor_release(&b);
    bhi_processor_release(&c);
    be_on(&all);
}

/* -- real workers --------------------------------------------------------------------------------
 */

static struct {
    cpu_set_t expected; /* of all threads of all workers; empty: those of the first one */
    pid_t seen[256];
    size_t count;
    uint64_t deadline_ns; /* of the stream that was made last */
    size_t counting;      /* single rounds that count */
    size_t rehearsed;     /* those that do not */
} look;

BHT_WRAP(bh_status, bh_stream_create, bh_context *context, const bh_stream_options *options,
         bh_stream **out_stream, bh_detail *detail) {
    look.deadline_ns = options->deadline_ns;
    return __real_bh_stream_create(context, options, out_stream, detail);
}

static void look_at_thread(pid_t tid) {
    cpu_set_t set;
    BHT_EQ(sched_getaffinity(tid, sizeof set, &set), 0);
    if (!CPU_COUNT(&look.expected)) {
        look.expected = set;
    }
    BHT_TRUE(CPU_EQUAL(&set, &look.expected));
}

static void look_at(bh_stream *stream) {
    char path[64];
    bh_detail why = {0};
    if (bh_stream_wait_ready(stream, BHT_SECOND_MS * 60 * 1000000, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    const pid_t pid = bh_stream_worker_pid(stream);
    for (size_t i = 0; i < look.count; i++) {
        if (look.seen[i] == pid) {
            return;
        }
    }
    BHT_TRUE(pid > 0 && look.count < BHT_COUNT(look.seen));
    look.seen[look.count++] = pid;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    BHT_TRUE(threads);
    size_t found = 0;
    for (const struct dirent *entry; (entry = readdir(threads));) {
        if (entry->d_name[0] != '.') {
            look_at_thread((pid_t)atoi(entry->d_name));
            found++;
        }
    }
    closedir(threads);
    BHT_TRUE(found > 2); /* its own, the channel's, the driver's */
}

BHT_WRAP(bool, bhi_round_run, struct bhi_race *race, size_t count, bool with_base, unsigned one_of,
         struct bhi_clocked out[BHI_RACERS], struct bhi_judge_outcome *outcome) {
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        if (race->contenders[i]) {
            look_at(race->contenders[i]->stream);
        }
    }
    look_at(race->base->stream);
    if (race->flush) {
        look_at(race->flush->stream);
    }
    for (int i = 0; i < BHI_RACERS; i++) {
        out[i] = (struct bhi_clocked){.host_ns = 100000 + 200000 * count, .device_ns = 200000};
    }
    look.counting += count == 1 && !race->rehearsal;
    look.rehearsed += count == 1 && race->rehearsal;
    BHT_TRUE(count == 1 || !race->rehearsal); /* batches count */
    race->rounds++;
    return true;
}

static const char text_of_task[] =
    "{\"name\": \"copy\", \"sizes\": [{\"n\": 64}],"
    " \"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"}},"
    " \"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},"
    " \"groups\": [1], \"reference\": {\"eval\": \"Y = X\"},"
    " \"limits\": {\"deadline\": \"7s\"}}";
static const char copy[] = "#version 450\n"
                           "layout(local_size_x = 64) in;\n"
                           "layout(set = 0, binding = 0) readonly buffer X { float x[]; };\n"
                           "layout(set = 0, binding = 1) buffer Y { float y[]; };\n"
                           "void main() { y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x]; "
                           "}\n";

/* What it writes it reads, too. */
static const char text_of_inout[] =
    "{\"name\": \"double\", \"sizes\": [{\"n\": 64}],"
    " \"inout\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"}},"
    " \"groups\": [1], \"reference\": {\"kernel\": \"double.comp\"}}";
static const char doubles[] = "#version 450\n"
                              "layout(local_size_x = 64) in;\n"
                              "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
                              "void main() { x[gl_GlobalInvocationID.x] *= 2.0; }\n";

static const char *text = text_of_task;
static struct bhi_task task;
static struct bhi_court court;
static struct bhi_timekeeper timer;
static struct bhi_judge_outcome outcome;

/* Starts the workers. |expected|: where they must be; NULL: where the first one is. */
static void begin(bool all_processors, const cpu_set_t *expected) {
    const bh_judge_options options = {.timed_runs = 5, .all_processors = all_processors};
    struct bhi_complaint complaint;
    bh_detail why = {0};
    court = (struct bhi_court){.task = &task, .selector = "lavapipe"};
    if (!bhi_task_parse("t.json", "", text, &task, &complaint) ||
        !bhi_trials_make(&task, NULL, 0, &court.trials, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    if (bh_context_create(NULL, &court.context, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    if (task.reference == BHI_REFERENCE_KERNEL && !bhi_reference_run(&court, &outcome)) {
        BHT_FAIL("%s", outcome.message);
    }
    CPU_ZERO(&look.expected);
    if (expected) {
        look.expected = *expected;
    }
    look.count = look.counting = look.rehearsed = 0;
    if (!bhi_timekeeper_open(&court, &options, &timer, &outcome)) {
        BHT_FAIL("%s", outcome.message);
    }
    bh_stream *const streams[] = {timer.reference.stream, timer.itself.stream, timer.base.stream,
                                  timer.flush.stream};
    for (size_t i = 0; i < BHT_COUNT(streams); i++) {
        look_at(streams[i]);
    }
    BHT_EQ(look.count, 4);
}

static bool on_processor; /* then memory is given back between rounds */

/* Runs the reference beside itself. |rehearsal|: what all of the rounds read; NULL: they count. */
static void run_rounds(size_t count, struct bhi_flush *flush, struct bhi_material *rehearsal,
                       struct bhi_clocked clocked[BHI_RACERS]) {
    bh_judgement itself = {.verdict = BH_JUDGE_CORRECT};
    struct bhi_material material;
    struct bhi_race race = {.court = &court,
                            .contenders = {&timer.itself, &timer.reference},
                            .base = &timer.base,
                            .flush = flush,
                            .trial = bhi_timed_trial(&court, 0),
                            .judgement = &itself,
                            .on_processor = on_processor,
                            .rehearsal = rehearsal,
                            .material = &material,
                            .slots = 3};
    bhi_material_open(&court, race.trial, &material);
    for (size_t i = 0; i < count; i++) {
        if (!__real_bhi_round_run(&race, 1, true, 1, clocked, &outcome)) {
            BHT_FAIL("%s", outcome.message);
        }
    }
    bhi_material_close(&material);
}

/* What a worker worked is known if all have one processor. */
static void expect_work(bool known) {
    struct bhi_clocked clocked[BHI_RACERS] = {{0}};
    run_rounds(2, NULL, NULL, clocked); /* with the first run workers get their kernels */
    const enum bhi_racer racers[] = {BHI_RACER_CANDIDATE, BHI_RACER_REFERENCE, BHI_RACER_BASE};
    for (size_t i = 0; i < BHT_COUNT(racers); i++) {
        BHT_TRUE(clocked[racers[i]].host_ns > 0);
        BHT_EQ(clocked[racers[i]].work_ns > 0, known);
    }
}

/* -- what a worker knows before its run, and does ------------------------------------------------
 */

enum { WORKERS_CLOCK = 4711 };

static struct {
    bool on;             /* workers have the clock below, and buffers are looked for */
    bool seen_too_early; /* a worker had a buffer that was not submitted yet */
    size_t seen;         /* buffers that workers had when their submissions had ended */
    long work_ns;
    float inputs[64]; /* the first element of each, */
    size_t runs;      /* of so many */
} spied;

BHT_WRAP(int, clock_getcpuclockid, pid_t pid, clockid_t *out_clock) {
    if (!spied.on) {
        return __real_clock_getcpuclockid(pid, out_clock);
    }
    *out_clock = WORKERS_CLOCK;
    return 0;
}

BHT_WRAP(int, clock_gettime, clockid_t clock, struct timespec *out_time) {
    if (clock != WORKERS_CLOCK) {
        return __real_clock_gettime(clock, out_time);
    }
    *out_time = (struct timespec){.tv_nsec = spied.work_ns};
    return 0;
}

/* Fills in the inode of what |pid| has mapped there; of a buffer: its memfd's. |address| 0: finds the
 * inode *inode anywhere. */
static bool find_mapped(pid_t pid, uint64_t address, unsigned long *inode) {
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "r");
    BHT_TRUE(file);
    while (!found && fgets(line, sizeof line, file)) {
        unsigned long begin, end, number;
        BHT_EQ(sscanf(line, "%lx-%lx %*s %*s %*s %lu", &begin, &end, &number), 3);
        found = address ? begin <= address && address < end : number == *inode;
        *inode = found ? number : *inode;
    }
    BHT_EQ(fclose(file), 0);
    return found;
}

/* The first buffer of a dispatch is X, its input. */
static void *input_of(const bh_command *command) {
    bh_detail why = {0};
    void *at;
    BHT_EQ(bh_buffer_map(command->dispatch.bindings[0].buffer, BH_MAP_READ, BH_FOREVER, &at, &why),
           BH_OK);
    return at;
}

static bool worker_has_input(bh_stream *stream, const bh_command *command) {
    const pid_t pid = bh_stream_worker_pid(stream);
    unsigned long inode = 0;
    void *const at = input_of(command);
    BHT_TRUE(find_mapped(getpid(), (uint64_t)(uintptr_t)at, &inode));
    return pid > 0 && find_mapped(pid, 0, &inode);
}

/* What the device has made last, and how often. */
static struct {
    size_t count;
    struct bhi_maker_array array;
} made;

BHT_WRAP(bool, bhi_maker_make, const struct bhi_maker *maker, const struct bhi_maker_array *arrays,
         size_t count, bh_buffer *into, struct bhi_judge_outcome *outcome_) {
    made.count += count;
    made.array = arrays[count - 1];
    return __real_bhi_maker_make(maker, arrays, count, into, outcome_);
}

/* The kernel finds it where it was made. */
static void expect_made(const bh_command *command) {
    float expected[64];
    bhi_filler_fill(&made.array.filler, made.array.place, BH_DTYPE_F32, 64, expected);
    BHT_MEM_EQ((uint8_t *)input_of(command) + command->dispatch.bindings[0].offset, expected,
               sizeof expected);
}

/* A worker works 1000 ns while caches are flushed, and 10 ns in each run. */
BHT_WRAP(bool, bhi_court_submit, bh_stream *stream, const bh_command *commands, uint32_t count,
         struct bhi_clocked *out, struct bhi_judge_outcome *outcome_) {
    const bool dispatch = spied.on && commands->type == BH_COMMAND_DISPATCH;
    spied.work_ns += dispatch ? 10 : 1000;
    /* The empty kernel's worker is the judge's own. */
    spied.seen_too_early |=
        dispatch && stream != timer.base.stream && worker_has_input(stream, commands);
    if (dispatch && made.count) {
        expect_made(commands);
    }
    if (dispatch && spied.runs < BHT_COUNT(spied.inputs)) {
        memcpy(&spied.inputs[spied.runs++], input_of(commands), sizeof spied.inputs[0]);
    }
    const bool good = __real_bhi_court_submit(stream, commands, count, out, outcome_);
    spied.seen += dispatch && worker_has_input(stream, commands);
    return good;
}

static void end(void) {
    bhi_timekeeper_close(&timer);
    bhi_trials_free(&task, &court.trials);
    BHT_EQ(bh_context_destroy(court.context), BH_OK);
    bhi_task_free(&task);
}

TEST(runs_are_timed_on_one_processor) {
    struct bhi_candidate candidate = {
        .file = {.path = "copy.comp", .code = copy, .size = strlen(copy)}};
    const cpu_set_t before = ours();
    begin(false, NULL);
    if (!bhi_timekeeper_measure(&timer, &candidate, &outcome)) {
        BHT_FAIL("%s", outcome.message);
    }
    const cpu_set_t after = ours();
    BHT_TRUE(CPU_EQUAL(&before, &after));
    BHT_EQ(CPU_COUNT(&look.expected), 1);
    /* The reference against itself, and beside the candidate, in five groups each. */
    BHT_TRUE(look.count >= 2 + 2 * 5 + 2 * 5);
    BHT_EQ(look.deadline_ns, 7000000000u * (uint64_t)CPU_COUNT(&before));
    BHT_EQ(look.counting, 5 + 5); /* of the warm-up and of fresh workers none does */
    /* A first run, and three of each fresh worker; beside the candidate a warm-up of as many runs as count. */
    BHT_EQ(look.rehearsed, 1 + 5 * 3 + 1 + 5 + 4 * 3);
    const bh_judgement *of = &candidate.judgement;
    BHT_STR_EQ(of->message, "");
    BHT_EQ(of->timing_count, 1);
    BHT_TRUE(of->timings[0].one_processor && !of->timings[0].spreads);
    expect_work(true);
    end();
}

TEST(all_processors_if_asked_for) {
    const cpu_set_t all = ours();
    begin(true, &all);
    expect_work(false);
    BHT_EQ(timer.spreads, CPU_COUNT(&all) > 1);
    BHT_TRUE(!timer.processor.chosen);
    BHT_EQ(look.deadline_ns, 7000000000u);
    end();
}

/* In no round does a worker have what it is to read before its submission. */
static void expect_inputs_in_time(void) {
    struct bhi_clocked clocked[BHI_RACERS];
    spied.on = true;
    run_rounds(3, &timer.flush, NULL, clocked);
    spied.on = false;
    BHT_TRUE(!spied.seen_too_early);
    BHT_EQ(spied.seen, 3u * 3u);
}

/* What it could compute from its inputs while caches are flushed would not be timed. */
TEST(a_worker_has_its_inputs_no_sooner_than_its_submission) {
    begin(false, NULL);
    expect_inputs_in_time();
    end();
}

/* It keeps the memory that it writes. But what is read there first is for nobody before, whoever makes it. */
static void read_and_write(bool on_device) {
    struct bhi_maker maker = {.kernel = NULL};
    FILE *file = fopen("double.comp", "w");
    BHT_TRUE(file && fputs(doubles, file) >= 0 && fclose(file) == 0);
    text = text_of_inout;
    begin(false, NULL);
    if (on_device) {
        BHT_TRUE(bhi_maker_open_for(&court, bhi_timed_trial(&court, 0), &maker, &outcome));
        court.maker = &maker;
    }
    expect_inputs_in_time();
    BHT_EQ(made.count, on_device ? 3 * 3 : 0);
    court.maker = NULL;
    bhi_maker_close(&maker);
    end();
    BHT_EQ(remove("double.comp"), 0);
}

TEST(a_worker_has_what_it_reads_and_writes_no_sooner_either) {
    read_and_write(false);
}
TEST(what_runs_read_and_write_the_device_makes_as_it_makes_inputs) {
    read_and_write(true);
}

/* The same bytes, whoever makes them; and where workers do not trust each other, for each alone. */
TEST(inputs_are_those_of_the_host_also_if_the_device_makes_them) {
    enum { RUNS = 3 };
    static const uint64_t seeds[RUNS] = {5, 6, 7};
    const struct bhi_trial *of;
    struct bhi_material material;
    struct bhi_maker maker;
    struct bhi_lap_place place, other;
    float expected[64];
    bh_detail why = {0};
    void *at;
    begin(false, NULL);
    of = bhi_timed_trial(&court, 0);
    BHT_TRUE(bhi_maker_open_for(&court, of, &maker, &outcome));
    court.maker = &maker;
    bhi_material_open(&court, of, &material);
    BHT_TRUE(bhi_material_make(&material, seeds, RUNS, &outcome));
    BHT_TRUE(material.is_made);
    for (size_t i = 0; i < RUNS; i++) {
        const struct bhi_filler_place where = {.seed = seeds[i]};
        BHT_TRUE(bhi_material_give(&material, 0, i, &place, &outcome));
        BHT_TRUE(bhi_material_give(&material, 1, i, &other, &outcome));
        BHT_TRUE(place.inputs != other.inputs);
        bhi_filler_fill(&task.arrays[0].filler, where, BH_DTYPE_F32, 64, expected);
        BHT_EQ(bh_buffer_map(other.inputs, BH_MAP_READ, BH_FOREVER, &at, &why), BH_OK);
        BHT_MEM_EQ((uint8_t *)at + other.inputs_begin, expected, sizeof expected);
    }
    bhi_material_close(&material);
    court.maker = NULL;
    bhi_maker_close(&maker);
    end();
}

/* All who take part in a round read the same, which nobody has seen; unless it does not count. */
TEST(only_rounds_that_do_not_count_read_what_was_read_before) {
    enum { ROUNDS = 3, RACERS = 3 };
    struct bhi_clocked clocked[BHI_RACERS];
    struct bhi_material rehearsal;
    begin(false, NULL);
    bhi_material_open(&court, bhi_timed_trial(&court, 0), &rehearsal);
    for (int rehearses = 0; rehearses < 2; rehearses++) {
        spied.on = true;
        spied.runs = 0;
        run_rounds(ROUNDS, NULL, rehearses ? &rehearsal : NULL, clocked);
        spied.on = false;
        BHT_EQ(spied.runs, ROUNDS * RACERS);
        for (size_t i = 0; i < spied.runs; i++) {
            for (size_t k = 0; k < i; k++) {
                const bool same_round = i / RACERS == k / RACERS;
                BHT_EQ(spied.inputs[i] == spied.inputs[k], same_round || rehearses);
            }
        }
    }
    bhi_material_close(&rehearsal);
    end();
}

static uint64_t pool_bytes(void) {
    bh_stats stats = {.struct_size = sizeof stats};
    bh_detail why = {0};
    BHT_EQ(bh_context_stats(court.context, &stats, NULL, 0, NULL, &why), BH_OK);
    return stats.pool_bytes;
}

/* No living worker may get what another one has had, so most of it is of no use. */
TEST(memory_of_rounds_does_not_pile_up) {
    struct bhi_clocked clocked[BHI_RACERS];
    begin(false, NULL);
    on_processor = true;
    run_rounds(3, NULL, NULL, clocked);
    const uint64_t few = pool_bytes();
    run_rounds(9, NULL, NULL, clocked);
    BHT_EQ(pool_bytes(), few);
    on_processor = false;
    end();
}

TEST(work_before_a_submission_counts_as_its_own) {
    struct bhi_clocked clocked[BHI_RACERS];
    begin(false, NULL);
    spied.on = true;
    run_rounds(2, &timer.flush, NULL, clocked);
    spied.on = false;
    BHT_GE(clocked[BHI_RACER_CANDIDATE].work_ns, 1010);
    BHT_GE(clocked[BHI_RACER_REFERENCE].work_ns, 1010);
    BHT_GE(clocked[BHI_RACER_BASE].work_ns, 1010);
    end();
}

/* What another worker has worked is not its own. */
TEST(the_work_of_a_workers_first_run_is_not_known) {
    struct bhi_clocked clocked[BHI_RACERS];
    begin(false, NULL);
    spied.on = true;
    run_rounds(2, NULL, NULL, clocked);
    BHT_TRUE(bhi_contender_renew(&court, &timer.itself, &outcome));
    run_rounds(1, NULL, NULL, clocked);
    BHT_EQ(clocked[BHI_RACER_CANDIDATE].work_ns, 0);
    BHT_GE(clocked[BHI_RACER_REFERENCE].work_ns, 10);
    run_rounds(1, NULL, NULL, clocked);
    BHT_GE(clocked[BHI_RACER_CANDIDATE].work_ns, 10);
    spied.on = false;
    end();
}

/* Each processor in turn, so that one of them is not the one that would be chosen anyway. */
TEST(a_mask_of_its_own_is_kept) {
    const cpu_set_t all = ours(), two = first_of(&all, 2);
    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
        const cpu_set_t only = set_of((const int[]){(int)i}, 1);
        if (CPU_ISSET(i, &two)) {
            be_on(&only);
            begin(false, &only);
            be_on(&all);
            BHT_EQ(look.deadline_ns, 7000000000u);
            end();
        }
    }
}
