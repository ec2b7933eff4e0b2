/* Strict streams (E4): once a submission is poisoned, so is all that was submitted after it, until
 * the stream is reset; nobody else is. */
#include "fixture.h"

struct stage {
    bh_context *context;
    bh_stream *strict, *other;
    bh_kernel *gate_kernel, *square;
    bh_buffer *gate, *x, *y, *z;
    uint32_t *word; /* opens the gate */
};

static struct stage set_up(void) {
    struct stage s = {.context = fx_context(NULL)};
    bh_stream_options options = fx_stream_options();
    BHT_TRUE(!options.strict);
    options.name = "strict";
    options.deadline_ns = BH_FOREVER;
    options.strict = true;
    s.strict = fx_stream_with(s.context, options);
    s.other = fx_stream(s.context, "other", FX_SECONDS);
    fx_ready(s.strict);
    fx_ready(s.other);
    s.gate_kernel = fx_kernel(s.context, "gate");
    s.square = fx_kernel(s.context, "square");
    s.gate = fx_words(s.context, 64, 0);
    s.word = fx_pointer(s.gate);
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, 0);
    s.z = fx_words(s.context, 64, 0);
    return s;
}

/* A worker refuses it: the kernel has a binding that it is not given. */
static bh_event *refused(bh_stream *stream, struct stage *s) {
    return fx_run(stream, s->square, s->z);
}

static void expect_strict(bh_event *event, const bh_event *origin, bh_executed executed) {
    bh_verdict verdict = fx_expect(event, BH_STREAM_FAILED);
    BHT_EQ(verdict.origin, bh_event_id(origin));
    BHT_EQ(verdict.hops, 1);
    BHT_EQ(verdict.executed, executed);
    BHT_STR_HAS(verdict.message, "strict");
    BHT_STR_EQ(verdict.stream_name, "strict");
}

/* What is in the lane behind a failure, what is queued behind that, and what is submitted later. */
TEST(a_strict_stream_stays_failed) {
    struct stage s = set_up();
    bh_event *before = fx_square(s.strict, s.square, s.x, s.y);
    bh_event *gate = fx_gate(s.strict, s.gate_kernel, s.gate);
    fx_await_gate(s.gate);
    bh_event *in_lane = fx_square(s.strict, s.square, s.x, s.y);
    bh_event *beside = fx_square(s.other, s.square, s.x, s.z);
    fx_kill(bh_stream_worker_pid(s.strict), SIGKILL);
    fx_expect(gate, BH_WORKER_SIGNAL);
    expect_strict(in_lane, gate, BH_EXECUTED_NO);
    fx_expect(before, BH_OK);
    fx_expect(beside, BH_OK);
    fx_ready(s.strict);
    /* Submitting is not an error (E8); what was submitted is, for as long as it takes. */
    for (int i = 0; i < 3; i++) {
        expect_strict(fx_square(s.strict, s.square, s.x, s.y), gate, BH_EXECUTED_NO);
    }
    BHT_EQ(bh_stream_synchronize(s.strict, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    /* Poison by data is told as such, also there. */
    fx_expect(fx_square(s.strict, s.square, s.gate, s.y), BH_WORKER_SIGNAL);
    fx_expect_healthy(s.context, s.other);

    BHT_EQ(bh_stream_reset(s.strict, NULL), BH_OK);
    BHT_EQ(bh_stream_synchronize(s.strict, FX_SECONDS, NULL), BH_OK);
    fx_expect_healthy(s.context, s.strict);
    fx_expect(gate, BH_WORKER_SIGNAL);
}

/* The same program on a stream that is not strict: only what depends on the failure fails. */
TEST(others_are_not_strict) {
    struct stage s = set_up();
    bh_event *bad = refused(s.other, &s);
    fx_expect(fx_square(s.other, s.square, s.x, s.y), BH_OK);
    fx_expect(bad, BH_BINDING_MISMATCH);
}

/* The worker goes on after a refused submission, and would run what comes next. */
TEST(a_refusal_fails_a_strict_stream) {
    struct stage s = set_up();
    bh_event *gate = fx_gate(s.strict, s.gate_kernel, s.gate);
    fx_await_gate(s.gate);
    bh_event *bad = refused(s.strict, &s);
    bh_event *after[20];
    for (int i = 0; i < 20; i++) {
        after[i] = fx_square(s.strict, s.square, s.x, s.y);
    }
    fx_open(s.word);
    fx_expect(gate, BH_OK);
    fx_expect(bad, BH_BINDING_MISMATCH);
    for (int i = 0; i < 20; i++) {
        BHT_EQ(fx_expect(after[i], BH_STREAM_FAILED).origin, bh_event_id(bad));
    }
    BHT_EQ(bh_stream_reset(s.strict, NULL), BH_OK);
    fx_expect_healthy(s.context, s.strict);
}

/* "After" is the order of submission: what came before a cancelled one is none of its business. */
TEST(what_came_before_is_spared) {
    struct stage s = set_up();
    bh_event *gate = fx_gate(s.strict, s.gate_kernel, s.gate);
    fx_await_gate(s.gate);
    bh_event *before = fx_square(s.strict, s.square, s.x, s.y);
    bh_event *cancelled = fx_square(s.strict, s.square, s.x, s.y);
    bh_event *after = fx_square(s.strict, s.square, s.x, s.y);
    BHT_EQ(bh_event_cancel(cancelled), BH_OK);
    fx_expect(cancelled, BH_CANCELLED);
    expect_strict(after, cancelled, BH_EXECUTED_NO);
    BHT_EQ(bh_event_query(gate), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(gate, BH_OK);
    fx_expect(before, BH_OK);
}

/* Poison that comes from another stream fails a strict one, too. */
TEST(a_dependent_fails_its_strict_stream) {
    struct stage s = set_up();
    bh_event *bad = refused(s.other, &s);
    const bh_binding bindings[] = {bh_bind_read(0, s.x), bh_bind_write(1, s.y)};
    bh_event *dependent = fx_command(s.strict, fx_dispatch(s.square, bindings, 2), &bad, 1);
    bh_event *later = fx_square(s.strict, s.square, s.x, s.z);
    fx_expect(dependent, BH_BINDING_MISMATCH);
    const bh_verdict verdict = fx_expect(later, BH_STREAM_FAILED);
    BHT_EQ(verdict.origin, bh_event_id(bad));
    BHT_EQ(verdict.hops, 2);
}

/* What depends on one that a strict stream has failed is itself a victim of that stream, whatever
 * its own is like. Reset, overwritten, all is well again. */
TEST(strictness_spreads_to_dependents) {
    struct stage s = set_up();
    bh_event *bad = refused(s.strict, &s);
    fx_square(s.strict, s.square, s.x, s.y);
    bh_event *dependent = fx_square(s.other, s.square, s.y, s.gate);
    const bh_verdict verdict = fx_expect(dependent, BH_STREAM_FAILED);
    BHT_EQ(verdict.origin, bh_event_id(bad));
    BHT_EQ(verdict.hops, 2);
    BHT_STR_EQ(verdict.stream_name, "other");
    BHT_EQ(bh_stream_reset(s.strict, NULL), BH_OK);
    bh_event *again = fx_square(s.strict, s.square, s.x, s.y); /* overwrites y */
    bh_event *good = fx_square(s.other, s.square, s.y, s.gate);
    fx_expect(again, BH_OK);
    fx_expect(good, BH_OK);
}
