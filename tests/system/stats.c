/* bh_context_stats: each number is moved by what it counts and by nothing else, once (E9), and the
 * sums agree at every moment. */
#include "files.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS 32

struct all {
    bh_stats stats;
    bh_work_stats rows[ROWS];
    size_t count;
};

static struct all look(bh_context *context) {
    struct all all = {.stats = {.struct_size = sizeof all.stats},
                      .rows = {{.struct_size = sizeof all.rows[0]}}};
    BHT_EQ(bh_context_stats(context, &all.stats, all.rows, ROWS, &all.count, NULL), BH_OK);
    BHT_LE(all.count, ROWS);
    return all;
}

static uint64_t sum(const uint64_t *numbers, size_t count) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += numbers[i];
    }
    return total;
}

static uint64_t ended(const bh_work_stats *row) {
    return sum(row->ended, BH_STATUSES) + row->dependents;
}

static const bh_work_stats *row_of(const struct all *all, bh_work_scope scope, const char *name) {
    for (size_t i = 0; i < all->count; i++) {
        const bh_work_stats *row = &all->rows[i];
        if (row->scope == scope &&
            strcmp(scope == BH_WORK_STREAM ? row->stream : row->tenant, name) == 0) {
            return row;
        }
    }
    BHT_FAIL("there is no row of \"%s\"", name);
}

/* What must hold of every snapshot. Only rows of which all streams live are sums of others. */
static void expect_sums(const struct all *all, bool nothing_gone) {
    const bh_stats *stats = &all->stats;
    uint64_t living = 0, streams = 0;
    for (size_t kind = BH_PROCESS_WORKER; kind < BH_PROCESS_KINDS; kind++) {
        living += sum(stats->processes[kind], BH_PROCESS_STATES);
    }
    BHT_EQ(stats->workers_started, living + sum(stats->deaths, BH_STATUSES));
    struct {
        uint64_t ended, queued, in_flight, deaths, waits, runs;
    } sums[3] = {0};
    for (size_t i = 0; i < all->count; i++) {
        const bh_work_stats *row = &all->rows[i];
        BHT_LE(row->restarts, row->deaths);
        BHT_LE(sum(row->run.counts, BH_BUCKETS), ended(row));
        sums[row->scope].ended += ended(row);
        sums[row->scope].queued += row->queued;
        sums[row->scope].in_flight += row->in_flight;
        sums[row->scope].deaths += row->deaths;
        sums[row->scope].waits += sum(row->wait.counts, BH_BUCKETS);
        sums[row->scope].runs += sum(row->run.counts, BH_BUCKETS);
        streams += row->scope == BH_WORK_STREAM;
    }
    BHT_EQ(streams, stats->streams);
    BHT_EQ(stats->tenants + streams + 1, all->count);
    BHT_MEM_EQ(&sums[BH_WORK_CONTEXT], &sums[BH_WORK_TENANT], sizeof sums[0]);
    BHT_TRUE(!nothing_gone ||
             !memcmp(&sums[BH_WORK_TENANT], &sums[BH_WORK_STREAM], sizeof sums[0]));
    BHT_EQ(sums[0].waits, sums[0].runs);
}

/* -- deaths ------------------------------------------------------------------------------------ */

struct victim {
    bh_context *context;
    bh_stream *stream;
};

static bh_event *launch(struct victim *v) {
    bh_buffer *data = fx_words(v->context, 64, 0);
    return fx_run(v->stream, fx_kernel(v->context, "gate"), data); /* a fault ends it */
}

static bh_event *crash(struct victim *v) {
    bh_event *event = fx_hold(v->context, v->stream).event;
    fx_kill(bh_stream_worker_pid(v->stream), SIGSEGV);
    return event;
}

static bh_event *hang(struct victim *v) {
    bh_buffer *data = fx_words(v->context, 64, 0);
    return fx_gate_within(v->stream, fx_kernel(v->context, "gate"), data, 100 * FX_MS);
}

static bh_event *cancel(struct victim *v) {
    bh_event *event = fx_hold(v->context, v->stream).event;
    BHT_EQ(bh_event_cancel(event), BH_OK);
    return event;
}

static bh_event *submit(bh_stream *stream, bh_event *after) {
    bh_submit_info info = {.struct_size = sizeof info};
    info.waits = &after;
    info.wait_count = after ? 1 : 0;
    return fx_submit(stream, &info);
}

static bh_event *kill_an_idle_one(struct victim *v) {
    fx_expect(submit(v->stream, NULL), BH_OK); /* so that the stream may go on without the worker */
    fx_kill(bh_stream_worker_pid(v->stream), SIGKILL);
    return NULL;
}

static bh_event *nothing(struct victim *v) {
    (void)v;
    return NULL;
}

/* |of_start|: the first worker dies before it is ready. */
static const struct cause {
    const char *name, *fault;
    bh_event *(*act)(struct victim *v);
    bh_status status;
} causes[] = {
    {"a crash", NULL, crash, BH_WORKER_SIGNAL},
    {"a hang", NULL, hang, BH_DEADLINE},
    {"a cancel", NULL, cancel, BH_CANCELLED},
    {"an exit", "1:submitted:1=exit7", launch, BH_WORKER_EXIT},
    {"a forbidden call", "1:submitted:1=sigsys", launch, BH_SECCOMP},
    {"a kill from outside", NULL, kill_an_idle_one, BH_WORKER_SIGNAL},
    {"a failed start", "1:device:1=kill", nothing, BH_UNAVAILABLE},
};

TEST(a_death_is_counted_once_by_its_cause) {
    for (size_t i = 0; i < BHT_COUNT(causes); i++) {
        const struct cause *cause = &causes[i];
        struct victim v = {.context = fx_context(cause->fault)};
        fprintf(stderr, "%s\n", cause->name);
        v.stream = fx_stream(v.context, "s", BH_FOREVER);
        (void)fx_ready(v.stream);
        struct all before = look(v.context);
        bh_event *event = cause->act(&v);
        if (event) {
            fx_expect(event, cause->status);
        }
        WAIT_UNTIL(fx_stats(v.context).deaths[cause->status] == 1, 20000);
        (void)fx_ready(v.stream);
        const struct all after = look(v.context);
        const bh_work_stats *row = row_of(&after, BH_WORK_STREAM, "s");
        BHT_EQ(sum(after.stats.deaths, BH_STATUSES), 1);
        BHT_EQ(row->deaths, 1);
        BHT_EQ(row->restarts, 1);
        BHT_EQ(row->ended[cause->status], !!event);
        BHT_EQ(ended(row) - row->ended[BH_OK], !!event);
        BHT_EQ(sum(row->run.counts, BH_BUCKETS), ended(row));
        BHT_EQ(after.stats.zygotes_lost, 0);
        expect_sums(&before, true);
        expect_sums(&after, true);
        bh_stream_release(v.stream);
        /* A worker that is no longer needed is no loss, and what it was needed for is kept. */
        WAIT_UNTIL(fx_stats(v.context).deaths[BH_OK] == 1, 20000);
        before = look(v.context);
        BHT_EQ(before.count, 2);
        BHT_EQ(row_of(&before, BH_WORK_TENANT, "")->deaths, 1);
        BHT_EQ(ended(&before.rows[0]), ended(row));
        expect_sums(&before, false);
        fx_release_all();
    }
}

TEST(a_lost_zygote_is_counted_and_its_workers) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    const pid_t pid = fx_ready(stream);
    fx_kill(bht_descendant_called(getpid(), "bh-zygote"), SIGKILL);
    WAIT_UNTIL(fx_stats(context).zygotes_lost == 1, 20000);
    (void)fx_ready_after(stream, pid);
    const struct all all = look(context);
    BHT_EQ(all.stats.deaths[BH_ZYGOTE_LOST], 1);
    BHT_EQ(all.stats.processes[BH_PROCESS_ZYGOTE][BH_PROCESS_READY], 1);
    BHT_EQ(sum(all.stats.processes[BH_PROCESS_ZYGOTE], BH_PROCESS_STATES), 1);
    expect_sums(&all, true);
}

/* -- submissions ------------------------------------------------------------------------------- */

static bh_stream *stream_of(bh_context *context, const char *name, const char *tenant,
                            bool strict) {
    bh_stream_options options = fx_stream_options();
    options.name = name;
    options.tenant = tenant;
    options.strict = strict;
    return fx_stream_with(context, options);
}

TEST(a_submission_is_counted_once_by_its_end) {
    bh_context *context = fx_context(NULL);
    bh_stream *a = stream_of(context, "a", "alice", false);
    bh_stream *b = stream_of(context, "b", "bob", false);
    bh_stream *strict = stream_of(context, "strict", "bob", true);
    bh_event *events[8] = {fx_hold(context, a).event};
    events[1] = submit(b, events[0]);      /* another stream's dependent */
    events[2] = submit(a, NULL);           /* behind it: in the lane, of none of its doing */
    events[3] = submit(strict, events[1]); /* a dependent's dependent: its stream fails, */
    events[4] = submit(strict, NULL);      /* and so does what comes after it */
    events[5] = submit(b, events[0]);
    BHT_EQ(bh_event_cancel(events[5]), BH_OK);
    struct all all = look(context);
    BHT_EQ(row_of(&all, BH_WORK_STREAM, "a")->in_flight, 2);
    BHT_EQ(row_of(&all, BH_WORK_STREAM, "b")->queued, 1);
    BHT_EQ(row_of(&all, BH_WORK_TENANT, "bob")->queued, 3);
    BHT_EQ(all.rows[0].queued + all.rows[0].in_flight, 5);
    BHT_EQ(ended(&all.rows[0]), 1);
    expect_sums(&all, true);
    BHT_EQ(bh_event_cancel(events[0]), BH_OK);
    fx_expect(events[0], BH_CANCELLED);
    fx_expect(events[1], BH_CANCELLED);
    fx_expect(events[2], BH_OK);
    fx_expect(events[3], BH_CANCELLED);
    fx_expect(events[4], BH_STREAM_FAILED);
    all = look(context);
    const bh_work_stats *row = row_of(&all, BH_WORK_STREAM, "a");
    BHT_EQ(row->ended[BH_CANCELLED], 1);
    BHT_EQ(row->ended[BH_OK], 1);
    BHT_EQ(ended(row), 2);
    BHT_EQ(sum(row->wait.counts, BH_BUCKETS), 2);
    const bh_verdict verdict = fx_verdict(events[0]);
    BHT_GE(row->run.sum_ns, verdict.ended_ns - verdict.started_ns);
    row = row_of(&all, BH_WORK_STREAM, "b");
    BHT_EQ(row->dependents, 1);
    BHT_EQ(row->ended[BH_CANCELLED], 1);
    BHT_EQ(ended(row), 2);
    BHT_EQ(sum(row->wait.counts, BH_BUCKETS), 0); /* neither began */
    row = row_of(&all, BH_WORK_STREAM, "strict");
    BHT_EQ(row->dependents, 1);
    BHT_EQ(row->ended[BH_STREAM_FAILED], 1);
    BHT_EQ(ended(row), 2);
    BHT_EQ(row->queued + row->in_flight, 0);
    expect_sums(&all, true);
    bh_stream_release(b);
    WAIT_UNTIL(fx_stats(context).streams == 2, 20000);
    all = look(context);
    BHT_EQ(ended(row_of(&all, BH_WORK_TENANT, "bob")), 4); /* what is gone is not forgotten */
    BHT_EQ(ended(&all.rows[0]), 6);
    expect_sums(&all, false);
}

/* -- processes --------------------------------------------------------------------------------- */

static size_t called(const char *name) {
    pid_t below[64];
    const size_t count = bht_descendants(getpid(), below, BHT_COUNT(below));
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += bht_proc_lines(below[i], "comm", name);
    }
    return found;
}

TEST(processes_are_those_that_ps_shows) {
    bh_context_options options = fx_options();
    options.spares = 2;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *a = fx_stream(context, "a", FX_SECONDS), *b = fx_stream(context, "b", FX_SECONDS);
    fx_ready(a);
    fx_ready(b);
    enter_folder();
    fx_write_file("f", "0123456789abcdef", 16);
    bh_file_source source = source_of("f", BH_FILE_RAW, NULL);
    bh_buffer *buffer = fx_load(context, &source);
    (void)fx_mapped(buffer);
    fx_settle(context);
    static const struct {
        bh_process_kind kind;
        const char *name;
        size_t count;
    } kinds[] = {{BH_PROCESS_ZYGOTE, "bh-zygote", 1},
                 {BH_PROCESS_WORKER, "bh:", 2},
                 {BH_PROCESS_SPARE, "bh-spare", 2},
                 {BH_PROCESS_LOADER, "bh-loader", 1},
                 {BH_PROCESS_COMPILER, "bh-compiler", 0}};
    for (size_t i = 0; i < BHT_COUNT(kinds); i++) {
        WAIT_UNTIL(fx_stats(context).processes[kinds[i].kind][BH_PROCESS_READY] == kinds[i].count,
                   20000);
        BHT_EQ(called(kinds[i].name), kinds[i].count);
        const bh_stats stats = fx_stats(context);
        BHT_EQ(sum(stats.processes[kinds[i].kind], BH_PROCESS_STATES), kinds[i].count);
    }
    const pid_t pid = bh_stream_worker_pid(a);
    BHT_EQ(kill(pid, SIGSTOP), 0); /* it is not seen to end, and does not */
    BHT_EQ(fx_stats(context).processes[BH_PROCESS_WORKER][BH_PROCESS_READY], 2);
    fx_kill(pid, SIGKILL);
    fx_ready_after(a, pid);
    WAIT_UNTIL(fx_stats(context).deaths[BH_WORKER_SIGNAL] == 1, 20000);
    BHT_EQ(fx_stats(context).processes[BH_PROCESS_WORKER][BH_PROCESS_READY], 2);
}

/* -- bytes ------------------------------------------------------------------------------------- */

TEST(bytes_are_counted_where_they_are) {
    bh_context *context = fx_context("*:load:1=stop");
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_ready(stream);
    const uint64_t before = fx_stats(context).host_bytes, page = (uint64_t)sysconf(_SC_PAGESIZE);
    bh_buffer *pooled = fx_buffer(context, 2 * page);
    BHT_EQ(fx_stats(context).host_bytes, before + 2 * page);
    bh_buffer_release(pooled);
    BHT_EQ(fx_stats(context).host_bytes, before);
    BHT_EQ(fx_stats(context).pool_bytes, 2 * page);
    pooled = fx_buffer(context, 2 * page);
    BHT_EQ(fx_stats(context).host_bytes, before + 2 * page);
    BHT_EQ(fx_stats(context).pool_bytes, 0);
    bh_buffer *device = fx_buffer_with(
        context, 3 * page, (bh_buffer_options){.stream = stream, .memory = BH_MEMORY_DEVICE});
    struct all all = look(context);
    BHT_EQ(all.stats.device_bytes, 3 * page);
    BHT_EQ(row_of(&all, BH_WORK_STREAM, "s")->device_bytes, 3 * page);
    BHT_EQ(all.rows[0].device_bytes, 3 * page);
    bh_buffer_release(device);
    BHT_EQ(fx_stats(context).device_bytes, 0);

    enter_folder();
    const char header[] = "{" TENSOR("t", "U8", "100", "0,100") "}";
    write_safetensors("f", sizeof header - 1, header, 100);
    bh_file_source source = source_of("f", BH_FILE_SAFETENSORS, "t");
    const uint64_t unloaded = fx_stats(context).host_bytes;
    bh_buffer *loaded = fx_load(context, &source);
    const pid_t loader = fx_await_stopped();
    BHT_EQ(fx_stats(context).load_bytes, 100);
    BHT_EQ(fx_stats(context).loads, 1);
    BHT_EQ(fx_stats(context).host_bytes, unloaded + page); /* not of the pool's */
    BHT_EQ(fx_stats(context).loads_ready, 0);
    BHT_EQ(kill(loader, SIGCONT), 0);
    (void)fx_mapped(loaded);
    bh_stats stats = fx_stats(context);
    BHT_EQ(stats.load_bytes + stats.loads + stats.loads_poisoned, 0);
    BHT_EQ(stats.loads_ready, 1); /* the reading of its header is none */
    bh_buffer_release(loaded);
    source.tensor = "u"; /* refused: it never was a load */
    bh_buffer *none = NULL;
    BHT_EQ(fx_from_file(context, &source, &none, NULL), BH_LOAD_FAILED);
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK); /* ends the loader, whose count is kept */
    WAIT_UNTIL(fx_stats(context).processes[BH_PROCESS_LOADER][BH_PROCESS_READY] == 0, 20000);
    stats = fx_stats(context);
    BHT_EQ(stats.loads_ready, 1);
    BHT_EQ(stats.host_bytes, unloaded);
}

/* -- the call ---------------------------------------------------------------------------------- */

static bool is_zero(const struct all *all) {
    bh_stats none = {.struct_size = sizeof none};
    bh_work_stats no_row = {.struct_size = sizeof no_row};
    return !all->count && !memcmp(&all->stats, &none, sizeof none) &&
           !memcmp(&all->rows[1], &no_row, sizeof no_row);
}

TEST(a_closed_context_and_a_child_get_zeros) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_ready(stream);
    struct all all = look(context);
    bh_detail why;
    BHT_EQ(all.count, 3);
    const pid_t child = fork();
    if (child == 0) {
        const bh_status status =
            bh_context_stats(context, &all.stats, all.rows, ROWS, &all.count, &why);
        _exit(status == BH_FORKED && is_zero(&all) ? 0 : 1);
    }
    int status = -1;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    /* Arrays that are too short, and none at all. */
    bh_work_stats one[2] = {{.struct_size = sizeof one[0]}, {.tenant = "untouched"}};
    BHT_EQ(bh_context_stats(context, &all.stats, one, 1, &all.count, NULL), BH_OK);
    BHT_EQ(all.count, 3);
    BHT_EQ(one[0].scope, BH_WORK_CONTEXT);
    BHT_STR_EQ(one[1].tenant, "untouched");
    BHT_EQ(bh_context_stats(context, &all.stats, NULL, 0, &all.count, NULL), BH_OK);
    BHT_EQ(all.count, 3);
    BHT_EQ(bh_context_stats(context, &all.stats, one, 1, NULL, &why), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "out_count");
    BHT_EQ(bh_context_stats(context, &all.stats, NULL, 1, &all.count, &why), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "out_work");
    BHT_EQ(bh_context_stats(context, NULL, one, 1, &all.count, &why), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "out_stats");
    BHT_EQ(bh_context_stats(NULL, &all.stats, one, 1, &all.count, &why), BH_INVALID_ARGUMENT);
    one[0].struct_size = 0;
    BHT_EQ(bh_context_stats(context, &all.stats, one, 1, &all.count, &why), BH_INVALID_ARGUMENT);
    bh_stream_release(stream);
    bh_context_destroy(context);
    BHT_EQ(bh_context_stats(context, &all.stats, all.rows, ROWS, &all.count, &why), BH_CLOSED);
    BHT_TRUE(is_zero(&all));
}

static struct {
    bh_context *context;
    _Atomic bool stop;
    _Atomic uint64_t looks;
} reader;

static void *read_on(void *nothing) {
    while (!atomic_load(&reader.stop)) {
        const struct all all = look(reader.context);
        expect_sums(&all, true);
        atomic_fetch_add(&reader.looks, 1);
    }
    return nothing;
}

TEST(sums_agree_at_every_moment_while_workers_die) {
    bh_context_options options = fx_options();
    options.restart_budget = 1000;
    options.worker_idle_ns = FX_SECONDS;
    reader.context = fx_context_with(options, NULL);
    bh_stream *streams[3] = {stream_of(reader.context, "0", "alice", false),
                             stream_of(reader.context, "1", "bob", false),
                             stream_of(reader.context, "2", "bob", false)};
    for (int i = 0; i < 2; i++) {
        bht_start(read_on, NULL);
    }
    uint64_t submitted = 0;
    for (int round = 0; round < 4; round++) {
        bh_event *last = NULL;
        const uint64_t seen = atomic_load(&reader.looks);
        while (atomic_load(&reader.looks) < seen + 100) { /* they never get a worker */
            bh_stream_release(stream_of(reader.context, "x", "carol", false));
        }
        for (int i = 0; i < 3; i++) {
            const pid_t pid = fx_ready(streams[i]);
            for (int k = 0; k < 20; k++, submitted++) {
                last = submit(streams[i], last);
            }
            kill(pid, SIGKILL);
        }
        (void)fx_verdict(last);
    }
    atomic_store(&reader.stop, true);
    bht_join();
    (void)!bh_context_synchronize(reader.context, FX_SECONDS, NULL);
    const struct all all = look(reader.context);
    BHT_EQ(ended(&all.rows[0]), submitted);
    BHT_EQ(all.rows[0].queued + all.rows[0].in_flight, 0);
    BHT_GE(all.rows[0].deaths, 4);
}
