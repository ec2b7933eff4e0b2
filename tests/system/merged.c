/* Several submissions that were waiting in the lane share one queue submission of the device, and
 * one completion record. What one of them does must not be taken for another's doing (E11, E14). */
#include "fixture.h"

/* A worker merges what took little time lately. How long that is depends on the machine. */
#define MERGE "*:merge:*=fail"

/* The first must run within its deadline, the second begin to. */
#define FIRST_DEADLINE_NS  (BHT_SECOND_MS / 2 * FX_MS)
#define SECOND_DEADLINE_NS (BHT_SECOND_MS * FX_MS)
/* How late that may be enforced: for the machine's other work. */
#define SLACK_NS (BHT_SECOND_MS * FX_MS)

/* |first|, which is short, and |second|, a gate on what the first has written, are taken by the
 * worker together. The gate runs, closed; nothing of the first is recorded. */
struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *gate, *square;
    bh_buffer *x, *y;
    volatile uint32_t *words; /* of y */
    bh_event *first, *second;
    pid_t pid;
    uint64_t seen_ns; /* the gate ran then, and for a while */
};

static bh_event *launch(struct stage *s, bool gate, uint32_t groups, uint64_t deadline_ns) {
    const bh_binding on_square[] = {bh_bind_read(0, s->x), bh_bind_write(1, s->y)};
    const bh_binding on_gate = bh_bind_read_write(0, s->y);
    return gate ? fx_launch(s->stream, s->gate, groups, &on_gate, 1, deadline_ns)
                : fx_launch(s->stream, s->square, groups, on_square, 2, deadline_ns);
}

static struct stage set_up_kernels(uint64_t first_deadline_ns, uint64_t second_deadline_ns,
                                   bool trusted) {
    struct stage s = {.context = fx_context(MERGE)};
    bh_stream_options options = fx_stream_options();
    options.name = "merged";
    options.deadline_ns = BH_FOREVER;
    options.grace_ns = FX_SECONDS; /* what is told to end, ends: on a busy machine, too */
    s.stream = fx_stream_with(s.context, options);
    s.gate = (trusted ? fx_kernel_trusted : fx_kernel_guarded)(s.context, "gate");
    s.square = fx_kernel(s.context, "square");
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, FX_GATE_OPEN);
    s.words = fx_pointer(s.y);
    /* Only what is compiled is merged. */
    fx_expect(launch(&s, true, 1, 0), BH_OK);
    fx_expect(launch(&s, false, 1, 0), BH_OK);
    /* Both are in the lane before the worker looks. */
    s.pid = fx_ready(s.stream);
    fx_stop(s.pid);
    s.words[1] = 0;
    s.first = launch(&s, false, 1, first_deadline_ns);
    s.second = launch(&s, true, 65535, second_deadline_ns);
    fx_kill(s.pid, SIGCONT);
    WAIT_UNTIL(s.words[1] == 1, 20000);
    s.seen_ns = bht_now_ns();
    BHT_EQ(bh_event_query(s.first), BH_EVENT_PENDING); /* merged: its record waits for the other */
    return s;
}

static struct stage set_up(uint64_t first_deadline_ns) {
    return set_up_kernels(first_deadline_ns, BH_FOREVER, true);
}

/* |killed|: and its worker went with it. */
static void expect_second_did_it(struct stage *s, bh_status cause, bool killed) {
    fx_expect(s->second, cause);
    bh_verdict second = fx_verdict(s->second), first = fx_verdict(s->first);
    BHT_EQ(second.origin, bh_event_id(s->second));
    BHT_EQ(second.hops, 0);
    BHT_EQ(second.executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(second.worker_pid, s->pid);
    BHT_EQ(second.signal, killed ? SIGKILL : 0);
    /* Its data is there, but in a dead worker no record says so. */
    BHT_EQ(first.status, killed ? BH_WORKER_LOST : BH_OK);
    BHT_EQ(first.origin, bh_event_id(killed ? s->second : s->first));
    BHT_EQ(bh_stream_worker_pid(s->stream) == s->pid, !killed);
}

/* The culprit depends on one that is lost with it: its own fault did not come along that path. */
TEST(the_culprit_is_no_victim_of_its_victims) {
    struct stage s = set_up(BH_FOREVER);
    fx_kill(s.pid, SIGKILL);
    expect_second_did_it(&s, BH_WORKER_SIGNAL, true);
    fx_expect_healthy(s.context, s.stream);
}

/* The second runs for |wait_ns|, and then both are well. */
static void expect_no_harm(struct stage *s, uint64_t wait_ns) {
    BHT_EQ(bh_event_wait(s->second, wait_ns), BH_TIMEOUT);
    fx_open(s->words);
    fx_expect(s->second, BH_OK);
    fx_expect(s->first, BH_OK);
    BHT_EQ(bh_stream_worker_pid(s->stream), s->pid);
    fx_expect_healthy(s->context, s->stream);
}

/* The first is long done, by the device's own word: its deadline is nobody else's. */
TEST(a_deadline_is_for_its_own_submission) {
    struct stage s = set_up(FIRST_DEADLINE_NS);
    expect_no_harm(&s, FIRST_DEADLINE_NS + 300 * FX_MS);
}

/* The first has no deadline, and its event is the oldest: the second has one all the same. It is
 * ended, and the other is not touched by that (E4, E13); where its kernel cannot be told to end,
 * the other is lost. */
static void deadline_of_the_second(bool trusted) {
    struct stage s = set_up_kernels(BH_FOREVER, SECOND_DEADLINE_NS, trusted);
    expect_second_did_it(&s, BH_DEADLINE, trusted);
    bh_verdict verdict = fx_verdict(s.second);
    BHT_EQ(verdict.limit, SECOND_DEADLINE_NS);
    BHT_GE(verdict.ended_ns - verdict.started_ns, SECOND_DEADLINE_NS);
    /* Its time runs from when it began, which the supervisor has to find out by itself. */
    const uint64_t drained_ns =
        trusted && fx_on_gpu() ? 5000 * FX_MS : 0; /* the driver's time-out */
    BHT_LE(verdict.ended_ns, s.seen_ns + SECOND_DEADLINE_NS + drained_ns + SLACK_NS);
    fx_expect_healthy(s.context, s.stream);
}

TEST(the_deadline_of_the_one_that_runs) {
    deadline_of_the_second(false);
}

TEST(the_deadline_of_a_trusted_one) {
    deadline_of_the_second(true);
}

static void cancel_the_second(bool trusted) {
    struct stage s = set_up_kernels(BH_FOREVER, BH_FOREVER, trusted);
    BHT_EQ(bh_event_cancel(s.second), BH_OK);
    expect_second_did_it(&s, BH_CANCELLED, trusted);
    fx_expect_healthy(s.context, s.stream);
}

TEST(the_one_that_runs_is_cancelled) {
    cancel_the_second(false);
}

TEST(a_trusted_one_that_runs_is_cancelled) {
    cancel_the_second(true);
}

/* To be cancelled, but done: what runs behind it is not killed for that. */
TEST(one_that_is_done_is_cancelled) {
    struct stage s = set_up(BH_FOREVER);
    BHT_EQ(bh_event_cancel(s.first), BH_OK);
    expect_no_harm(&s, 100 * FX_MS);
}

/* data = data * 3 + one, each time it runs. */
static bh_event *triple(bh_stream *stream, bh_kernel *mix, bh_buffer *data, bh_buffer *one) {
    const bh_binding bindings[] = {bh_bind_read_write(0, data), bh_bind_read(1, one)};
    const uint32_t groups[3] = {1, 1, 1}, push[2] = {3, 1};
    bh_event *event = NULL;
    BHT_EQ(bh_launch(stream, mix, groups, bindings, 2, push, sizeof push, &event, NULL), BH_OK);
    return event;
}

/* Before a protocol violation a worker may have run anything that it was given: none of that runs
 * again, unless it does no harm. Here both have run when it overwrites its progress page. */
TEST(nothing_runs_twice_after_a_protocol_violation) {
    bh_context *context = fx_context(MERGE ",1:before_record:3=garbage");
    bh_stream *stream = fx_stream(context, "violation", FX_SECONDS);
    bh_kernel *mix = fx_kernel(context, "mix");
    bh_buffer *one = fx_words(context, 64, 1), *x = fx_words(context, 64, 1);
    bh_buffer *y = fx_words(context, 64, 1);
    uint32_t *words = fx_pointer(y);
    pid_t pid = fx_ready(stream);
    for (int i = 0; i < 2; i++) {
        fx_expect(triple(stream, mix, i % 2 ? x : y, one), BH_OK);
    }
    words[0] = 1;
    fx_stop(pid);
    bh_event *first = triple(stream, mix, x, one), *second = triple(stream, mix, y, one);
    fx_kill(pid, SIGCONT);
    fx_expect(first, BH_PROTOCOL);
    fx_expect(second, BH_WORKER_LOST);
    BHT_EQ(words[0], 4); /* once */
    BHT_EQ(fx_verdict(second).origin, bh_event_id(first));
    BHT_EQ(fx_verdict(second).executed, BH_EXECUTED_UNKNOWN);
    fx_expect_healthy(context, stream);
}
