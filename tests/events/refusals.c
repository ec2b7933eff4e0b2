/* What must not be done to events and submissions: a typed answer, and nothing else happens. What
 * is wrong with single arguments is in tests/system/arguments.c. */
#include "stage.h"

/* One of each on a second context, for the first one to refuse. */
struct foreigners {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    bh_buffer *buffer;
    bh_event *event;
};

static struct foreigners foreigners_open(void) {
    struct foreigners f = {.context = fx_context(NULL)};
    f.stream = fx_stream(f.context, "foreign", FX_SECONDS);
    f.kernel = fx_kernel(f.context, "square");
    f.buffer = fx_words(f.context, STAGE_FLOATS, 0);
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = f.buffer, .size = 4}};
    f.event = ev_submit(f.stream, &fill, 1, NULL, 0);
    fx_expect(f.event, BH_OK);
    return f;
}

/* |word| is in the detail, there is no event, and the stream's worker has not heard of it. */
static void refuses(bh_stream *stream, const bh_submit_info *info, bh_status status,
                    const char *word) {
    for (int i = 0; i < 2; i++) {
        bh_detail detail = {0};
        bh_event *event = (bh_event *)&detail;
        BHT_EQ(bh_submit(stream, info, &event, &detail), status);
        BHT_TRUE(!event);
        BHT_EQ(detail.status, status);
        BHT_STR_HAS(detail.message, word);
        BHT_EQ(bh_submit(stream, info, NULL, NULL), status);
    }
}

TEST(foreign_objects_are_refused) {
    struct stage s = stage_open();
    struct foreigners f = foreigners_open();
    const bh_binding own[] = {bh_bind_read(0, s.x), bh_bind_write(1, s.y)};
    bh_binding mixed[] = {own[0], own[1]};
    mixed[1].buffer = f.buffer;
    bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {.kernel = f.kernel, .groups = {1, 1, 1}, .bindings = own, .binding_count = 2}};
    bh_submit_info info = {.struct_size = sizeof info, .commands = &command, .command_count = 1};
    refuses(s.b, &info, BH_INVALID_ARGUMENT, "kernel belongs to another context");
    command.dispatch.kernel = s.square;
    command.dispatch.bindings = mixed;
    refuses(s.b, &info, BH_INVALID_ARGUMENT, "buffer belongs to another context");
    command =
        (bh_command){.type = BH_COMMAND_COPY, .copy = {.src = f.buffer, .dst = s.y, .size = 4}};
    refuses(s.b, &info, BH_INVALID_ARGUMENT, "src belongs to another context");
    command = (bh_command){.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256}};
    bh_event *waits[] = {s.bad, f.event};
    info.waits = waits;
    info.wait_count = 2;
    refuses(s.b, &info, BH_INVALID_ARGUMENT, "waits[1] belongs to another context");
    bh_event *event = NULL;
    bh_detail detail;
    BHT_EQ(bh_kernel_prepare(f.kernel, s.b, &event, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_OTHER_CONTEXT);
    BHT_TRUE(!event);
    size_t index;
    /* Waiting for events of several contexts is fine: nothing depends on it. */
    BHT_EQ(bh_event_wait(f.event, FX_SECONDS), BH_OK);
    BHT_EQ(bh_event_wait_any(waits, 2, 0, &index), BH_OK);
    BHT_EQ(index, 1);
    /* None of it is queued behind the gate, none has touched y, and both contexts are well. */
    BHT_EQ(bh_stream_synchronize(s.b, 0, NULL), BH_OK);
    ev_squares(s.x, 0);
    fx_open(s.word);
    ev_ready(s.bad);
    ev_well(&s);
    fx_expect_healthy(f.context, f.stream);
}

TEST(holes_in_waits_and_empty_submissions_are_refused) {
    struct stage s = stage_open();
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256}};
    bh_event *waits[] = {s.bad, NULL, s.bad};
    bh_submit_info info = {.struct_size = sizeof info,
                           .commands = &fill,
                           .command_count = 1,
                           .waits = waits,
                           .wait_count = 3};
    refuses(s.b, &info, BH_INVALID_ARGUMENT, "waits[1] is NULL");
    info = (bh_submit_info){.struct_size = sizeof(bh_submit_info),
                            .commands = &fill,
                            .command_count = 1,
                            .wait_count = 1};
    refuses(s.b, &info, BH_INVALID_ARGUMENT, "waits is NULL");
    info = (bh_submit_info){.struct_size = sizeof(bh_submit_info), .command_count = 1};
    refuses(s.b, &info, BH_INVALID_ARGUMENT, "commands is NULL");
    size_t index;
    BHT_EQ(bh_event_wait_any(waits, 3, 0, &index), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_wait_any(NULL, 3, 0, &index), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_wait_any(waits, 0, 0, &index), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_wait_any(waits, 1, 0, NULL), BH_INVALID_ARGUMENT);
    /* The refused ones hold nothing: y is free, though the gate on which they waited runs. */
    BHT_EQ(bh_stream_synchronize(s.b, 0, NULL), BH_OK);
    void *mapped;
    BHT_EQ(bh_buffer_map(s.y, BH_MAP_READ_WRITE, 0, &mapped, NULL), BH_OK);
    fx_kill(s.pid, SIGKILL);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(bh_buffer_map(s.y, BH_MAP_READ_WRITE, 0, &mapped, NULL), BH_OK);
    ev_well(&s);
}

/* A submission's event does not exist before bh_submit has returned: it cannot be among its own
 * waits, nor among those of anything that it waits for. What looks like it, the same variable
 * twice, waits for the event that was there before. */
TEST(an_event_cannot_wait_for_itself) {
    struct stage s = stage_open();
    const bh_command fills[] = {
        {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256, .value = 1}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256, .value = 2}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256, .value = 3}}};
    bh_event *event = s.bad, *old[3];
    bh_submit_info info = {
        .struct_size = sizeof info, .command_count = 1, .waits = &event, .wait_count = 1};
    for (int i = 0; i < 3; i++) {
        old[i] = event;
        info.commands = &fills[i];
        BHT_EQ(bh_submit(i % 2 ? s.a : s.b, &info, &event, NULL), BH_OK);
        BHT_TRUE(event && event != old[i]);
        BHT_GT(bh_event_id(event), bh_event_id(old[i]));
        BHT_EQ(bh_event_wait(event, FX_MS), BH_TIMEOUT); /* it waits for the one before */
    }
    fx_open(s.word);
    ev_ready(event);
    const uint32_t *y = fx_pointer(s.y);
    BHT_EQ(y[0], 3);
    BHT_EQ(y[STAGE_FLOATS - 1], 3);
    /* Where it is refused the variable is NULL: the caller keeps another pointer, or loses it. */
    info.commands = NULL;
    BHT_EQ(bh_submit(s.a, &info, &event, NULL), BH_INVALID_ARGUMENT);
    BHT_TRUE(!event);
    for (int i = 1; i < 3; i++) {
        ev_ready(old[i]);
    }
    ev_well(&s);
}

/* The same twice is one dependency; a hundred times too. */
TEST(one_event_many_times_in_waits) {
    struct stage s = stage_open();
    bh_event *waits[100];
    for (size_t i = 0; i < BHT_COUNT(waits); i++) {
        waits[i] = s.bad;
    }
    bh_event *event = ev_square(&s, s.b, s.x, s.y, waits, BHT_COUNT(waits));
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(ev_poisoned(event, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO).other_causes, 0);
    ev_well(&s);
}

/* Events outlive their context, also those that had not ended. */
TEST(events_of_a_closed_context) {
    struct stage s = stage_open();
    bh_event *running = s.bad, *queued = ev_square(&s, s.b, s.gate, s.y, NULL, 0);
    bh_event *done = ev_square(&s, s.b, s.x, s.z, NULL, 0);
    bh_event *in_lane = ev_square(&s, s.a, s.x, s.w, NULL, 0);
    bh_event *refused = ev_refused(&s, s.b, s.z);
    BHT_EQ(bh_event_cancel(queued), BH_OK);
    ev_poisoned(refused, BH_BINDING_MISMATCH, refused, 0, BH_EXECUTED_NO);
    s.bad = NULL; /* the fixture's */
    stage_close(&s);
    bh_event *all[] = {running, queued, done, in_lane, refused};
    const bh_status ends[] = {BH_CONTEXT_CLOSED, BH_CANCELLED, BH_OK, BH_CONTEXT_CLOSED,
                              BH_BINDING_MISMATCH};
    for (size_t i = 0; i < BHT_COUNT(all); i++) {
        bh_verdict verdict = ev_agree(all[i], ends[i]);
        BHT_EQ(verdict.origin, bh_event_id(all[i]));
        BHT_EQ(bh_event_cancel(all[i]), BH_OK); /* nothing to do */
        bh_verdict again = ev_agree(all[i], ends[i]);
        ev_same_verdict(&verdict, &again);
    }
    size_t index = 9;
    BHT_EQ(bh_event_wait_any(all, BHT_COUNT(all), 0, &index), BH_OK);
    BHT_EQ(index, 0);
}

TEST(the_stream_of_a_closed_context) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_event *done = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    ev_ready(done);
    bh_context_destroy(s.context);
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = s.z, .size = 256, .value = 7}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &fill,
                                 .command_count = 1,
                                 .waits = &done,
                                 .wait_count = 1};
    refuses(s.a, &info, BH_CLOSED, "destroyed");
    bh_detail detail;
    bh_event *event = (bh_event *)&detail;
    BHT_EQ(bh_launch(s.a, s.square, (uint32_t[]){1, 1, 1}, NULL, 0, NULL, 0, &event, &detail),
           BH_CLOSED);
    BHT_TRUE(!event);
    event = (bh_event *)&detail;
    BHT_EQ(bh_kernel_prepare(s.square, s.a, &event, &detail), BH_CLOSED);
    BHT_TRUE(!event);
    static bh_kernel_info reflected = {.struct_size = sizeof reflected};
    BHT_EQ(bh_kernel_reflect(s.square, s.a, FX_SECONDS, &reflected, &detail), BH_CLOSED);
    BHT_EQ(bh_stream_wait_ready(s.a, FX_SECONDS, &detail), BH_CLOSED);
    BHT_EQ(bh_stream_reset(s.a, &detail), BH_CLOSED);
    BHT_EQ(bh_stream_worker_pid(s.a), 0);
    /* All of it has ended, and what was written can be read. */
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, &detail), BH_OK);
    ev_ready(done);
    ev_squares(s.y, 1);
}
