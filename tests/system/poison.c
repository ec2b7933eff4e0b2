/* How poison flows, and where it does not (E1–E8, E15, E16, B2, B5). Cases by their numbers in
 * docs/semantics.md. A gate kernel that the test opens, or kills, takes the place of timing. */
#include "fixture.h"

/* Two streams, a gate on the first. */
struct stage {
    bh_context *context;
    bh_stream *a, *b;
    bh_kernel *hang, *square;
    bh_buffer *gate;
    uint32_t *word;
    bh_buffer *x, *y, *z;
    bh_event *bad; /* runs on a */
    pid_t pid;
};

static struct stage set_up(void) {
    struct stage s = {.context = fx_context(NULL)};
    s.a = fx_stream(s.context, "a", BH_FOREVER);
    s.b = fx_stream(s.context, "b", FX_SECONDS);
    s.pid = fx_ready(s.a);
    fx_ready(s.b);
    s.hang = fx_kernel(s.context, "gate");
    s.square = fx_kernel(s.context, "square");
    s.gate = fx_words(s.context, 64, 0);
    s.word = fx_pointer(s.gate);
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, 0);
    s.z = fx_words(s.context, 64, 0);
    s.bad = fx_gate(s.a, s.hang, s.gate);
    fx_await_gate(s.gate);
    return s;
}

static void tear_down(struct stage *s) {
    bh_event_release(s->bad);
    bh_kernel_release(s->hang);
    bh_kernel_release(s->square);
    bh_buffer_release(s->gate);
    bh_buffer_release(s->x);
    bh_buffer_release(s->y);
    bh_buffer_release(s->z);
    bh_stream_release(s->a);
    bh_stream_release(s->b);
    bh_context_destroy(s->context);
}

static bh_event *square_after(bh_stream *stream, struct stage *s, bh_buffer *in, bh_buffer *out,
                              bh_event *const *waits, uint32_t wait_count) {
    const bh_binding bindings[] = {
        bh_bind_read(0, in),
        bh_bind_write(1, out),
    };
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = s->square, .groups = {1, 1, 1}, .bindings = bindings, .binding_count = 2}};
    bh_event *event = fx_command(stream, command, waits, wait_count); /* E8 */
    return event;
}

/* A chain of reads through buffers, no event named: E4's second way, and the hop count. */
static void poison_flows_through_buffers(void) {
    struct stage s = set_up();
    bh_event *one = fx_square(s.b, s.square, s.gate, s.y); /* reads what bad writes */
    bh_event *two = fx_square(s.a, s.square, s.y, s.z);
    bh_buffer *w = fx_words(s.context, 64, 0);
    bh_event *beside = fx_square(s.b, s.square, s.x, w);
    fx_kill(s.pid, SIGKILL);
    fx_expect(one, BH_WORKER_SIGNAL);
    fx_expect(two, BH_WORKER_SIGNAL);
    BHT_EQ(fx_verdict(one).hops, 1);
    BHT_EQ(fx_verdict(two).hops, 2);
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
    fx_expect(late, BH_WORKER_SIGNAL);
    BHT_EQ(fx_verdict(late).hops, 3);
    /* A partial write does not clean it, a whole one does. */
    uint32_t words[64] = {0};
    BHT_EQ(bh_buffer_write(s.z, 0, words, 16, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    BHT_EQ(bh_buffer_write(s.z, 0, words, sizeof words, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_map(s.z, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_OK);
    /* So does a command that overwrites it all. */
    bh_event *clean = fx_square(s.b, s.square, s.x, s.y);
    fx_expect(clean, BH_OK);
    BHT_EQ(bh_buffer_map(s.y, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_OK);
}

/* E15: a consumer on another stream runs after its producer, and sees its data. */
static void data_crosses_streams(void) {
    struct stage s = set_up();
    float *x = (float *)(void *)fx_pointer(s.x);
    for (int i = 0; i < 64; i++) {
        x[i] = 3.0f;
    }
    bh_event *first = fx_square(s.a, s.square, s.x, s.y); /* behind the gate */
    bh_event *second = fx_square(s.b, s.square, s.y, s.z);
    BHT_EQ(bh_event_wait(second, 20 * FX_MS), BH_TIMEOUT);
    fx_open(s.word);
    const void *z = fx_mapped(s.z);
    for (int i = 0; i < 64; i++) {
        BHT_TRUE(((float *)z)[i] == 81.0f);
    }
    fx_expect(first, BH_OK);
    fx_expect(second, BH_OK);
}

/* A writer waits for the readers of another stream, and is not poisoned by them. */
static void a_writer_waits_for_readers(void) {
    struct stage s = set_up();
    float *x = (float *)(void *)fx_pointer(s.x);
    for (int i = 0; i < 64; i++) {
        x[i] = 2.0f;
    }
    fx_square(s.a, s.square, s.x, s.y); /* behind the gate */
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = s.x, .size = 256, .value = 0}};
    bh_event *writer = fx_command(s.b, fill, NULL, 0);
    BHT_EQ(bh_event_wait(writer, 20 * FX_MS), BH_TIMEOUT);
    fx_open(s.word);
    fx_expect(writer, BH_OK);
    const void *y = fx_mapped(s.y);
    for (int i = 0; i < 64; i++) {
        BHT_TRUE(((float *)y)[i] == 4.0f);
    }
}

static void cancel_queued_and_running(void) {
    struct stage s = set_up();
    bh_event *waiting = square_after(s.b, &s, s.x, s.y, &s.bad, 1);
    bh_event *in_lane = fx_square(s.a, s.square, s.x, s.z);
    BHT_EQ(bh_event_cancel(waiting), BH_OK);
    fx_expect(waiting, BH_CANCELLED);
    BHT_EQ(fx_verdict(waiting).executed, BH_EXECUTED_NO);
    BHT_EQ(bh_event_cancel(s.bad), BH_OK);
    fx_expect(s.bad, BH_CANCELLED);
    BHT_EQ(fx_verdict(s.bad).executed, BH_EXECUTED_UNKNOWN);
    fx_expect(in_lane, BH_OK); /* E13: it was queued behind, and innocent */
    BHT_EQ(bh_event_cancel(in_lane), BH_OK);
    fx_expect(in_lane, BH_OK); /* final */
}

/* One that would overwrite a buffer ends before it starts, while the one before it still writes:
 * the next one waits for that one all the same, and so does the host. */
static void an_overwriter_that_ends_early(void) {
    struct stage s = set_up();
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = s.gate, .size = 256, .value = 5}};
    const bh_submit_info info = {.struct_size = sizeof info, .commands = &fill, .command_count = 1};
    bh_event *cancelled = NULL, *next = NULL;
    BHT_EQ(bh_submit(s.b, &info, &cancelled, NULL), BH_OK);
    BHT_EQ(bh_event_cancel(cancelled), BH_OK);
    fx_expect(cancelled, BH_CANCELLED);
    void *pointer;
    BHT_EQ(bh_buffer_map(s.gate, BH_MAP_DISCARD, 20 * FX_MS, &pointer, NULL), BH_TIMEOUT);
    BHT_EQ(bh_submit(s.b, &info, &next, NULL), BH_OK);
    BHT_EQ(bh_event_wait(next, 50 * FX_MS), BH_TIMEOUT);
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(next, BH_OK);
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_READY);
    BHT_EQ(*s.word, 5);
}

static void run(bh_stream *stream, const bh_command *command) {
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = command, .command_count = 1};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(stream, &info, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
}

/* A buffer is poisoned whole, by one that never ran, too; two halves do not clean it, one command
 * that writes all of it does. */
static void a_partial_write_does_not_clean(void) {
    struct stage s = set_up();
    bh_event *to_y = fx_square(s.b, s.square, s.gate, s.y);
    bh_event *to_z = fx_square(s.b, s.square, s.gate, s.z);
    fx_kill(s.pid, SIGKILL);
    fx_expect(to_y, BH_WORKER_SIGNAL);
    fx_expect(to_z, BH_WORKER_SIGNAL);
    BHT_EQ(fx_verdict(to_y).executed, BH_EXECUTED_NO);
    void *pointer;
    for (uint64_t offset = 0; offset <= 128; offset += 128) {
        const bh_command half = {.type = BH_COMMAND_FILL,
                                 .fill = {.dst = s.y, .offset = offset, .size = BH_WHOLE_SIZE}};
        const bh_command first = {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 128}};
        run(s.b, offset ? &half : &first);
        BHT_EQ(bh_buffer_map(s.y, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_WORKER_SIGNAL);
    }
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = BH_WHOLE_SIZE}};
    const bh_command copy = {.type = BH_COMMAND_COPY,
                             .copy = {.src = s.x, .dst = s.z, .size = BH_WHOLE_SIZE}};
    run(s.b, &fill);
    BHT_EQ(bh_buffer_map(s.y, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_OK);
    run(s.b, &copy);
    BHT_EQ(bh_buffer_map(s.z, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_OK);
}

/* What bulkhead.h says of a verdict's fields. */
static void whose_story_a_dependent_tells(void) {
    struct stage s = set_up();
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
    bh_event_release(event);

    /* Refused on the worker: its turn had come, and nothing ran. */
    const uint32_t one[3] = {1, 1, 1};
    BHT_EQ(bh_launch(s.b, s.square, one, NULL, 0, NULL, 0, &event, NULL), BH_OK);
    fx_expect(event, BH_BINDING_MISMATCH);
    const bh_verdict refused = fx_verdict(event);
    BHT_EQ(refused.executed, BH_EXECUTED_NO);
    BHT_GE(refused.started_ns, refused.submitted_ns);
    bh_event_release(event);

    /* Killed by the end of the context: no signal is blamed. */
    fx_pointer(s.gate)[1] = 0;
    event = fx_gate(s.a, s.hang, s.gate);
    fx_await_gate(s.gate);
    bh_context_destroy(s.context);
    fx_expect(event, BH_CONTEXT_CLOSED);
    const bh_verdict closed = fx_verdict(event);
    BHT_EQ(closed.signal, 0);
    BHT_EQ(closed.executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(bh_stream_synchronize(s.a, 0, NULL), BH_WORKER_SIGNAL); /* the first */
    bh_event_release(event);
    s.context = NULL;
}

/* Many poisoned writers of parts: a buffer remembers some, and the first is reported. */
static void many_poisoned_parts(void) {
    struct stage s = set_up();
    bh_event *first = NULL;
    for (int i = 0; i < 200; i++) {
        const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 4}};
        bh_event *event = fx_command(s.b, fill, &s.bad, 1);
        if (i == 0) {
            first = event;
        } else {
            bh_event_release(event);
        }
    }
    fx_kill(s.pid, SIGKILL);
    fx_expect(first, BH_WORKER_SIGNAL);
    bh_event *reader = fx_square(s.b, s.square, s.y, s.z);
    fx_expect(reader, BH_WORKER_SIGNAL);
    BHT_EQ(fx_verdict(reader).origin, bh_event_id(s.bad));
}

/* In the lane, behind one that never ends: it ends at once, never runs, and hurts nobody. */
static void cancel_behind_an_endless_one(void) {
    struct stage s = set_up();
    enum { COUNT = 100 };
    bh_event *behind[COUNT];
    for (int i = 0; i < COUNT; i++) {
        behind[i] = fx_square(s.a, s.square, s.x, s.y);
    }
    for (int i = 0; i < COUNT; i += 2) {
        BHT_EQ(bh_event_cancel(behind[i]), BH_OK);
        fx_expect(behind[i], BH_CANCELLED);
        BHT_EQ(fx_verdict(behind[i]).executed, BH_EXECUTED_NO);
    }
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(s.bad, BH_OK);
    for (int i = 1; i < COUNT; i += 2) {
        fx_expect(behind[i], BH_OK);
    }
    BHT_EQ(bh_stream_worker_pid(s.a), s.pid);
    fx_expect_healthy(s.context, s.a);
    for (int i = 0; i < COUNT; i++) {
        bh_event_release(behind[i]);
    }
}

/* Cancelled in the lane, then its worker dies: it is not run by the next one. */
static void cancelled_ones_stay_cancelled(void) {
    struct stage s = set_up();
    bh_event *a = fx_square(s.a, s.square, s.x, s.y);
    bh_event *b = fx_square(s.a, s.square, s.x, s.z);
    BHT_EQ(bh_event_cancel(a), BH_OK);
    fx_kill(s.pid, SIGKILL);
    fx_expect(s.bad, BH_WORKER_SIGNAL);
    fx_expect(a, BH_CANCELLED);
    fx_expect(b, BH_OK);
}

/* Cases 21, 22, 27: everything is released while it runs. */
static void all_handles_are_dropped_in_flight(void) {
    struct stage s = set_up();
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

static void wait_any(void) {
    struct stage s = set_up();
    bh_event *good = fx_square(s.b, s.square, s.x, s.y);
    bh_event *events[] = {s.bad, good};
    size_t index = 9;
    BHT_EQ(bh_event_wait_any(events, 2, FX_SECONDS, &index), BH_OK);
    BHT_EQ(index, 1);
    bh_event *held = square_after(s.b, &s, s.x, s.z, &s.bad, 1);
    bh_event *pending[] = {s.bad, held};
    BHT_EQ(bh_event_wait_any(pending, 2, 20 * FX_MS, &index), BH_TIMEOUT);
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(bh_event_wait_any(pending, 2, FX_SECONDS, &index), BH_OK);
    BHT_EQ(bh_event_wait_any(pending, 0, 0, &index), BH_INVALID_ARGUMENT);
}

/* More than the lane and the result ring can hold at once. */
static void more_than_the_lane_holds(void) {
    struct stage s = set_up();
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
static void read_and_overwritten_in_place(void) {
    for (int write_first = 0; write_first < 2; write_first++) {
        struct stage s = set_up();
        fx_kill(s.pid, SIGKILL);
        fx_expect(s.bad, BH_WORKER_SIGNAL);
        const bh_binding read = bh_bind_read(0, s.gate);
        const bh_binding write = bh_bind_write(1, s.gate);
        const bh_binding bindings[] = {write_first ? write : read, write_first ? read : write};
        bh_event *event = NULL;
        bh_detail detail;
        if (bh_launch(s.b, s.square, (const uint32_t[3]){1, 1, 1}, bindings, 2, NULL, 0, &event,
                      &detail) != BH_OK) {
            BHT_FAIL("bh_launch: %s", detail.message);
        }
        fx_expect(event, BH_WORKER_SIGNAL);
        BHT_EQ(fx_verdict(event).hops, 1);
        void *pointer;
        BHT_EQ(bh_buffer_map(s.gate, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_WORKER_SIGNAL);
        bh_event_release(event);
        tear_down(&s);
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(poison_flows_through_buffers),
        BHT_TEST(data_crosses_streams),
        BHT_TEST(a_writer_waits_for_readers),
        BHT_TEST(cancel_queued_and_running),
        BHT_TEST(an_overwriter_that_ends_early),
        BHT_TEST(a_partial_write_does_not_clean),
        BHT_TEST(whose_story_a_dependent_tells),
        BHT_TEST(many_poisoned_parts),
        BHT_TEST(cancel_behind_an_endless_one),
        BHT_TEST(cancelled_ones_stay_cancelled),
        BHT_TEST(all_handles_are_dropped_in_flight),
        BHT_TEST(wait_any),
        BHT_TEST_WITH(more_than_the_lane_holds, 120, 0),
        BHT_TEST(read_and_overwritten_in_place),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
