/* T1, T3: how much one worker runs before another takes its place, and for whom. */
#include "fixture.h"

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *square, *gate;
    bh_buffer *x, *y;
};

static bh_stream *stream_of(bh_context *context, bh_isolation isolation, const char *tenant) {
    bh_stream_options options = fx_stream_options();
    options.isolation = isolation;
    options.tenant = tenant;
    options.deadline_ns = FX_SECONDS;
    return fx_stream_with(context, options);
}

/* No worker may be lost for nothing: a planned replacement is free. */
static struct stage stage_open(bh_isolation isolation, uint32_t spares) {
    bh_context_options options = fx_options();
    options.spares = spares ? spares : BH_OFF;
    options.restart_budget = 1;
    options.restart_window_ns = 3600 * 1000 * FX_MS;
    options.quarantine_deaths = 1;
    struct stage s = {.context = fx_context_with(options, NULL)};
    s.stream = stream_of(s.context, isolation, NULL);
    s.square = fx_kernel(s.context, "square");
    s.gate = fx_kernel(s.context, "gate");
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, 0);
    return s;
}

/* Whose worker has done it. */
static int32_t pid_of(bh_event *event) {
    return fx_expect(event, BH_OK).worker_pid;
}

static bh_event *square(struct stage *s) {
    return fx_square(s->stream, s->square, s->x, s->y);
}

static bh_event *open_gate(struct stage *s) {
    return fx_run(s->stream, s->gate, fx_words(s->context, 2, FX_GATE_OPEN));
}

static bh_event *fill(struct stage *s) {
    return fx_fill(s->stream, s->y, 7);
}

enum { MANY = 6 };

TEST(a_worker_for_each_submission) {
    struct stage s = stage_open(BH_ISOLATION_SUBMISSION, 1);
    bh_event *events[MANY];
    int32_t pids[MANY];
    for (int i = 0; i < MANY; i++) { /* all at once: they wait for each other's workers */
        events[i] = square(&s);
    }
    for (int i = 0; i < MANY; i++) {
        pids[i] = pid_of(events[i]);
        for (int before = 0; before < i; before++) {
            BHT_TRUE(pids[before] != pids[i]);
        }
    }
}

TEST(a_worker_for_each_kernel) {
    struct stage s = stage_open(BH_ISOLATION_KERNEL, 1);
    bh_event *events[] = {square(&s),    fill(&s), square(&s), open_gate(&s),
                          open_gate(&s), fill(&s), square(&s)};
    int32_t pids[BHT_COUNT(events)];
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        pids[i] = pid_of(events[i]);
    }
    BHT_EQ(pids[1], pids[0]);
    BHT_EQ(pids[2], pids[0]);
    BHT_TRUE(pids[3] != pids[0]);
    BHT_EQ(pids[4], pids[3]);
    BHT_EQ(pids[5], pids[3]);
    BHT_TRUE(pids[6] != pids[0] && pids[6] != pids[3]);
}

/* One submission of both kernels. */
static bh_event *both(struct stage *s) {
    const bh_binding arrays[] = {bh_bind_read(0, s->x), bh_bind_read_write(1, s->y)};
    const bh_binding words[] = {bh_bind_read_write(0, fx_words(s->context, 2, FX_GATE_OPEN))};
    const bh_command commands[] = {fx_dispatch(s->square, arrays, 2),
                                   fx_dispatch(s->gate, words, 1)};
    return fx_commands(s->stream, commands, 2);
}

TEST(submissions_of_the_same_kernels_share_a_worker) {
    struct stage s = stage_open(BH_ISOLATION_KERNEL, 1);
    const int32_t pid = pid_of(both(&s));
    BHT_EQ(pid_of(both(&s)), pid);
    BHT_EQ(pid_of(fill(&s)), pid);
    const int32_t other = pid_of(square(&s)); /* one of them alone is other code */
    BHT_TRUE(other != pid);
    BHT_TRUE(pid_of(both(&s)) != other);
}

TEST(a_worker_for_a_stream) {
    struct stage s = stage_open(BH_ISOLATION_STREAM, 1);
    const int32_t pid = pid_of(square(&s));
    BHT_EQ(pid_of(open_gate(&s)), pid);
    BHT_EQ(pid_of(square(&s)), pid);
}

/* Copies and fills leave nothing behind, and meet nobody who has. */
TEST(what_launches_nothing_uses_nobody_up) {
    struct stage s = stage_open(BH_ISOLATION_SUBMISSION, 1);
    const int32_t pid = pid_of(fill(&s));
    BHT_EQ(pid_of(fill(&s)), pid);
    BHT_EQ(pid_of(square(&s)), pid);
    BHT_TRUE(pid_of(fill(&s)) != pid);
}

/* To prepare a kernel and launch it costs one compile; what it binds can be asked. */
TEST(what_is_prepared_is_launched_there) {
    struct stage s = stage_open(BH_ISOLATION_SUBMISSION, 1);
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_event *event = NULL;
    BHT_EQ(bh_kernel_reflect(s.square, s.stream, FX_SECONDS, &info, NULL), BH_OK);
    BHT_EQ(info.binding_count, 2);
    BHT_EQ(bh_kernel_prepare(s.square, s.stream, &event, NULL), BH_OK);
    const int32_t pid = pid_of(event);
    BHT_EQ(pid_of(square(&s)), pid);
    BHT_EQ(bh_kernel_prepare(s.gate, s.stream, &event, NULL), BH_OK);
    const int32_t prepared = pid_of(event);
    BHT_TRUE(prepared != pid);
    BHT_TRUE(pid_of(square(&s)) != prepared); /* another kernel has been compiled there */
}

/* One is in the lane at a time; while it works the next worker starts, without any spares. */
TEST(the_next_worker_starts_meanwhile) {
    struct stage s = stage_open(BH_ISOLATION_SUBMISSION, 0);
    fx_ready(s.stream);
    const size_t alone = bht_count_descendants(getpid()); /* a device's driver may have its own */
    const struct fx_held held = fx_hold(s.context, s.stream);
    WAIT_UNTIL(bht_count_descendants(getpid()) >= alone + PROCESSES_A_WORKER, 20000);
    bh_event *next = square(&s);
    BHT_EQ(bh_event_query(next), BH_EVENT_PENDING);
    fx_open(held.word);
    const int32_t pid = pid_of(held.event);
    BHT_TRUE(pid_of(next) != pid);
}

/* Whatever ran on the stream before, blame is certain: nobody has shared the worker. */
TEST(blame_is_certain) {
    static const bh_isolation isolations[] = {BH_ISOLATION_KERNEL, BH_ISOLATION_SUBMISSION};
    for (size_t i = 0; i < BHT_COUNT(isolations); i++) {
        struct stage s = stage_open(isolations[i], 1);
        pid_of(square(&s));
        bh_buffer *word = fx_words(s.context, 2, 0);
        bh_event *gate = fx_gate(s.stream, s.gate, word), *behind = square(&s);
        fx_await_gate(word);
        fx_kill(bh_stream_worker_pid(s.stream), SIGSEGV);
        BHT_EQ(fx_expect(gate, BH_WORKER_SIGNAL).blame, BH_BLAME_CERTAIN);
        pid_of(behind);
        BHT_EQ(fx_quarantined(s.context), 1);
        fx_release_all();
    }
}

/* T1. A worker of a stream that is gone goes with it: no other tenant meets it. */
TEST(a_worker_serves_one_tenant) {
    static const char *const tenants[] = {"alice", "bob", "carol", "alice"};
    struct stage s = stage_open(BH_ISOLATION_STREAM, 2);
    int32_t pids[BHT_COUNT(tenants)];
    for (size_t i = 0; i < BHT_COUNT(tenants); i++) {
        bh_stream_release(s.stream);
        s.stream = stream_of(s.context, BH_ISOLATION_STREAM, tenants[i]);
        pids[i] = pid_of(square(&s));
        for (size_t before = 0; before < i; before++) {
            BHT_TRUE(pids[before] != pids[i]);
        }
    }
}

TEST(an_isolation_that_there_is_not) {
    struct stage s = stage_open(BH_ISOLATION_STREAM, 0);
    bh_stream_options options = fx_stream_options();
    BHT_EQ(options.isolation, BH_ISOLATION_STREAM);
    options.isolation = (bh_isolation)3;
    bh_stream *stream = NULL;
    bh_detail detail;
    BHT_EQ(bh_stream_create(s.context, &options, &stream, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_UNKNOWN_VALUE);
    BHT_STR_EQ(detail.subject_name, "options.isolation");
}
