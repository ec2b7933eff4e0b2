/* How poison flows, and where it does not (E1–E8, E15, E16, B2, B5). Cases by their numbers in
 * docs/semantics.md. A gate kernel that the test opens, or kills, takes the place of timing. */
#include "../events/stage.h"

/* All of |buffer| as floats. */
static void expect_floats(bh_buffer *buffer, float value) {
    const float *floats = fx_mapped(buffer);
    for (int i = 0; i < 64; i++) {
        BHT_TRUE(floats[i] == value);
    }
}

static void write_floats(bh_buffer *buffer, float value) {
    float *floats = (float *)(void *)fx_pointer(buffer);
    for (int i = 0; i < 64; i++) {
        floats[i] = value;
    }
}

/* A chain of reads through buffers, no event named: E4's second way, and the hop count. */
TEST(poison_flows_through_buffers) {
    struct stage s = stage_open();
    bh_event *one = fx_square(s.b, s.square, s.gate, s.y); /* reads what bad writes */
    bh_event *two = fx_square(s.a, s.square, s.y, s.z);
    bh_buffer *w = fx_words(s.context, 64, 0);
    bh_event *beside = fx_square(s.b, s.square, s.x, w);
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(fx_expect(one, BH_WORKER_SIGNAL).hops, 1);
    BHT_EQ(fx_expect(two, BH_WORKER_SIGNAL).hops, 2);
    BHT_EQ(fx_verdict(two).origin, bh_event_id(s.bad));
    fx_expect(beside, BH_OK); /* case 16 */
    /* B5: mapping gives the verdict, again and again. */
    void *pointer;
    bh_detail detail;
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_buffer_map(s.z, BH_MAP_READ, FX_SECONDS, &pointer, &detail), BH_WORKER_SIGNAL);
        BHT_STR_HAS(detail.message, "poisoned");
    }
    /* Reading it in a new submission poisons that one at once. */
    bh_event *late = fx_square(s.b, s.square, s.z, s.y);
    BHT_EQ(fx_expect(late, BH_WORKER_SIGNAL).hops, 3);
    /* A partial write does not clean it, a whole one does. */
    uint32_t words[STAGE_FLOATS] = {0};
    BHT_EQ(bh_buffer_write(s.z, 0, words, 16, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    BHT_EQ(bh_buffer_write(s.z, 0, words, sizeof words, FX_SECONDS, NULL), BH_OK);
    fx_mapped(s.z);
    /* So does a command that overwrites it all. */
    fx_expect(fx_square(s.b, s.square, s.x, s.y), BH_OK);
    fx_mapped(s.y);
}

/* E15: a consumer on another stream runs after its producer, and sees its data. */
TEST(data_crosses_streams) {
    struct stage s = stage_open();
    write_floats(s.x, 3.0f);
    bh_event *first = fx_square(s.a, s.square, s.x, s.y); /* behind the gate */
    bh_event *second = fx_square(s.b, s.square, s.y, s.z);
    BHT_EQ(bh_event_wait(second, 20 * FX_MS), BH_TIMEOUT);
    fx_open(s.word);
    expect_floats(s.z, 81.0f);
    fx_expect(first, BH_OK);
    fx_expect(second, BH_OK);
}

/* A writer waits for the readers of another stream, and is not poisoned by them. */
TEST(a_writer_waits_for_readers) {
    struct stage s = stage_open();
    write_floats(s.x, 2.0f);
    fx_square(s.a, s.square, s.x, s.y); /* behind the gate */
    bh_event *writer = fx_fill(s.b, s.x, 0);
    BHT_EQ(bh_event_wait(writer, 20 * FX_MS), BH_TIMEOUT);
    fx_open(s.word);
    fx_expect(writer, BH_OK);
    expect_floats(s.y, 4.0f);
}

TEST(cancel_queued_and_running) {
    struct stage s = stage_open();
    bh_event *waiting = ev_square(&s, s.b, s.x, s.y, &s.bad, 1);
    bh_event *in_lane = fx_square(s.a, s.square, s.x, s.z);
    BHT_EQ(bh_event_cancel(waiting), BH_OK);
    BHT_EQ(fx_expect(waiting, BH_CANCELLED).executed, BH_EXECUTED_NO);
    BHT_EQ(bh_event_cancel(s.bad), BH_OK);
    BHT_EQ(fx_expect(s.bad, BH_CANCELLED).executed, BH_EXECUTED_UNKNOWN);
    fx_expect(in_lane, BH_OK); /* E13: it was queued behind, and innocent */
    BHT_EQ(bh_event_cancel(in_lane), BH_OK);
    fx_expect(in_lane, BH_OK); /* final */
}

/* One that would overwrite a buffer ends before it starts, while the one before it still writes:
 * the next one waits for that one all the same, and so does the host. */
TEST(an_overwriter_that_ends_early) {
    struct stage s = stage_open();
    bh_event *cancelled = fx_fill(s.b, s.gate, 5);
    BHT_EQ(bh_event_cancel(cancelled), BH_OK);
    fx_expect(cancelled, BH_CANCELLED);
    void *pointer;
    BHT_EQ(bh_buffer_map(s.gate, BH_MAP_DISCARD, 20 * FX_MS, &pointer, NULL), BH_TIMEOUT);
    bh_event *next = fx_fill(s.b, s.gate, 5);
    BHT_EQ(bh_event_wait(next, 50 * FX_MS), BH_TIMEOUT);
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(next, BH_OK);
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_READY);
    BHT_EQ(*s.word, 5);
}

/* A buffer is poisoned whole, by one that never ran, too; two halves do not clean it, one command
 * that writes all of it does. */
TEST(a_partial_write_does_not_clean) {
    struct stage s = stage_open();
    bh_event *to_y = fx_square(s.b, s.square, s.gate, s.y);
    bh_event *to_z = fx_square(s.b, s.square, s.gate, s.z);
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(fx_expect(to_y, BH_WORKER_SIGNAL).executed, BH_EXECUTED_NO);
    fx_expect(to_z, BH_WORKER_SIGNAL);
    for (uint64_t offset = 0; offset <= 128; offset += 128) {
        const bh_command half = {
            .type = BH_COMMAND_FILL,
            .fill = {.dst = s.y, .offset = offset, .size = offset ? BH_WHOLE_SIZE : 128}};
        fx_expect(fx_command(s.b, half, NULL, 0), BH_OK);
        BHT_EQ(fx_content(s.y), BH_WORKER_SIGNAL);
    }
    fx_expect(fx_fill(s.b, s.y, 0), BH_OK);
    fx_mapped(s.y);
    fx_expect(fx_copy(s.b, s.x, s.z), BH_OK);
    fx_mapped(s.z);
}

/* What bulkhead.h says of a verdict's fields. */
TEST(whose_story_a_dependent_tells) {
    struct stage s = stage_open();
    bh_event *event = fx_square(s.b, s.square, s.gate, s.y);
    fx_kill(s.pid, SIGKILL);
    fx_expect(event, BH_WORKER_SIGNAL);
    const bh_verdict own = fx_verdict(event), origin = fx_verdict(s.bad);
    BHT_STR_EQ(own.stream_name, "b");
    BHT_EQ(own.event, bh_event_id(event));
    BHT_EQ(own.executed, BH_EXECUTED_NO);
    BHT_EQ(own.started_ns, 0);
    BHT_GT(own.submitted_ns, origin.submitted_ns);
    BHT_GE(own.ended_ns, own.submitted_ns);
    BHT_EQ(own.origin, origin.event);
    BHT_EQ(own.signal, SIGKILL);
    BHT_EQ(own.worker_pid, s.pid);
    BHT_EQ(own.command_index, origin.command_index);
    BHT_STR_EQ(own.kernel_name, "gate");
    BHT_MEM_EQ(own.kernel_hash, origin.kernel_hash, sizeof own.kernel_hash);

    /* Refused on the worker: its turn had come, and nothing ran. */
    const bh_verdict refused =
        fx_expect(fx_launch(s.b, s.square, 1, NULL, 0, 0), BH_BINDING_MISMATCH);
    BHT_EQ(refused.executed, BH_EXECUTED_NO);
    BHT_GE(refused.started_ns, refused.submitted_ns);

    /* Killed by the end of the context: no signal is blamed. */
    fx_pointer(s.gate)[1] = 0;
    event = fx_gate(s.a, s.hang, s.gate);
    fx_await_gate(s.gate);
    bh_context_destroy(s.context);
    const bh_verdict closed = fx_expect(event, BH_CONTEXT_CLOSED);
    BHT_EQ(closed.signal, 0);
    BHT_EQ(closed.executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(bh_stream_synchronize(s.a, 0, NULL), BH_WORKER_SIGNAL); /* the first */
}

/* Many poisoned writers of parts: a buffer remembers some, and the first is reported. */
TEST(many_poisoned_parts) {
    struct stage s = stage_open();
    bh_event *first = NULL;
    for (int i = 0; i < 200; i++) {
        const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 4}};
        bh_event *event = fx_command(s.b, fill, &s.bad, 1);
        first = i ? first : event;
    }
    fx_kill(s.pid, SIGKILL);
    fx_expect(first, BH_WORKER_SIGNAL);
    const bh_verdict reader = fx_expect(fx_square(s.b, s.square, s.y, s.z), BH_WORKER_SIGNAL);
    BHT_EQ(reader.origin, bh_event_id(s.bad));
}

/* In the lane, behind one that never ends: it ends at once, never runs, and hurts nobody. */
TEST(cancel_behind_an_endless_one) {
    struct stage s = stage_open();
    enum { COUNT = 100 };
    bh_event *behind[COUNT];
    for (int i = 0; i < COUNT; i++) {
        behind[i] = fx_square(s.a, s.square, s.x, s.y);
    }
    for (int i = 0; i < COUNT; i += 2) {
        BHT_EQ(bh_event_cancel(behind[i]), BH_OK);
        BHT_EQ(fx_expect(behind[i], BH_CANCELLED).executed, BH_EXECUTED_NO);
    }
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(s.bad, BH_OK);
    for (int i = 1; i < COUNT; i += 2) {
        fx_expect(behind[i], BH_OK);
    }
    BHT_EQ(bh_stream_worker_pid(s.a), s.pid);
    fx_expect_healthy(s.context, s.a);
}

/* Cancelled in the lane, then its worker dies: it is not run by the next one. */
TEST(cancelled_ones_stay_cancelled) {
    struct stage s = stage_open();
    bh_event *a = fx_square(s.a, s.square, s.x, s.y);
    bh_event *b = fx_square(s.a, s.square, s.x, s.z);
    BHT_EQ(bh_event_cancel(a), BH_OK);
    fx_kill(s.pid, SIGKILL);
    fx_expect(s.bad, BH_WORKER_SIGNAL);
    fx_expect(a, BH_CANCELLED);
    fx_expect(b, BH_OK);
}

/* Cases 21, 22, 27: everything is released while it runs. */
TEST(all_handles_are_dropped_in_flight) {
    struct stage s = stage_open();
    bh_buffer *gate = fx_words(s.context, 64, 0);
    uint32_t *word = fx_pointer(gate);
    bh_kernel *hang = fx_kernel(s.context, "gate");
    bh_event *event = fx_gate(s.b, hang, gate);
    bh_buffer_release(gate);
    bh_kernel_release(hang);
    /* The mapping is still there, because the submission holds it. */
    BHT_EQ(bh_event_wait(event, 10 * FX_MS), BH_TIMEOUT);
    fx_open(word);
    fx_expect(event, BH_OK);
    /* Fire and forget: nobody waits; the worker's idle bell has the reactor look. */
    for (int i = 0; i < 100; i++) {
        bh_event_release(fx_square(s.b, s.square, s.x, s.y));
    }
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), BH_OK);
    fx_open(s.word);
}

/* More than the lane and the result ring can hold at once. */
TEST(more_than_the_lane_holds) {
    struct stage s = stage_open();
    enum { COUNT = 9000 };
    static bh_event *events[COUNT];
    for (int i = 0; i < COUNT; i++) {
        events[i] = fx_square(s.a, s.square, s.x, s.y); /* behind the gate */
    }
    fx_open(s.word);
    for (int i = COUNT - 1; i >= 0; i--) {
        BHT_EQ(bh_event_wait(events[i], 3 * FX_SECONDS), BH_OK);
        bh_event_release(events[i]);
    }
}

/* B5: a buffer that one dispatch reads and overwrites, in whichever order it is bound. What it
 * reads is what was there before: poison, here. */
TEST(read_and_overwritten_in_place) {
    for (int write_first = 0; write_first < 2; write_first++) {
        struct stage s = stage_open();
        fx_kill(s.pid, SIGKILL);
        fx_expect(s.bad, BH_WORKER_SIGNAL);
        const bh_binding read = bh_bind_read(0, s.gate);
        const bh_binding write = bh_bind_write(1, s.gate);
        const bh_binding bindings[] = {write_first ? write : read, write_first ? read : write};
        bh_event *event = fx_launch(s.b, s.square, 1, bindings, 2, 0);
        BHT_EQ(fx_expect(event, BH_WORKER_SIGNAL).hops, 1);
        BHT_EQ(fx_content(s.gate), BH_WORKER_SIGNAL);
    }
}
