/* bh_verdict.device_ns, from sandboxed workers. */
#include "fixture.h"

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *square;
    bh_buffer *x, *y;
};

static struct stage set_up(const char *faults) {
    struct stage s = {.context = fx_context(faults)};
    s.stream = fx_stream(s.context, "timed", FX_SECONDS);
    s.square = fx_kernel(s.context, "square");
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, 0);
    return s;
}

static bh_event *submit(struct stage *s, uint64_t flags) {
    const bh_binding bindings[] = {bh_bind_read(0, s->x), bh_bind_write(1, s->y)};
    const bh_command commands[] = {
        {.type = BH_COMMAND_FILL, .fill = {.dst = s->x, .size = BH_WHOLE_SIZE, .value = 0}},
        fx_dispatch(s->square, bindings, 2),
    };
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = commands, .command_count = 2, .flags = flags};
    return fx_submit(s->stream, &info);
}

static void expect(bh_event *event, bool timed) {
    const bh_verdict verdict = fx_expect(event, BH_OK);
    if (timed) {
        BHT_GE(verdict.device_ns, 1);
        BHT_LE(verdict.device_ns, verdict.ended_ns - verdict.started_ns);
    } else {
        BHT_EQ(verdict.device_ns, 0);
    }
}

TEST(of_those_that_ask_for_it) {
    struct stage s = set_up(NULL);
    for (int i = 0; i < 6; i++) {
        expect(submit(&s, i % 2 ? BH_SUBMIT_TIMED : 0), i % 2);
    }
    const bh_submit_info nothing = {.struct_size = sizeof nothing, .flags = BH_SUBMIT_TIMED};
    expect(fx_submit(s.stream, &nothing), false); /* it never came to the device */
}

/* Those that share one queue submission have their own. */
TEST(of_many_at_once) {
    struct stage s = set_up("*:merge:*=fail");
    bh_event *events[200];
    expect(submit(&s, 0), false);
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        events[i] = submit(&s, i % 3 ? BH_SUBMIT_TIMED : 0);
    }
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        expect(events[i], i % 3);
    }
}

/* What was told to end has been on the device until then; what depends on it never was. */
TEST(of_what_was_stopped_at_its_deadline) {
    bh_context *context = fx_context(NULL);
    bh_stream_options options = fx_stream_options();
    options.deadline_ns = BHT_SECOND_MS / 4 * FX_MS;
    options.grace_ns = FX_SECONDS;
    bh_stream *stream = fx_stream_with(context, options);
    const bh_binding binding = bh_bind_read_write(0, fx_words(context, 64, 0));
    bh_command command = fx_dispatch(fx_kernel(context, "hang"), &binding, 1);
    command.dispatch.groups[0] = 65535;
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .flags = BH_SUBMIT_TIMED};
    bh_event *event = fx_submit(stream, &info);
    const bh_submit_info after = {
        .struct_size = sizeof after, .waits = &event, .wait_count = 1, .flags = BH_SUBMIT_TIMED};
    bh_event *dependent = fx_submit(stream, &after);
    const bh_verdict verdict = fx_expect(event, BH_DEADLINE),
                     victim = fx_expect(dependent, BH_DEADLINE);
    BHT_STR_HAS(verdict.message, "still runs");
    BHT_GE(verdict.device_ns, 1);
    BHT_LE(verdict.device_ns, verdict.ended_ns - verdict.started_ns);
    BHT_EQ(victim.hops, 1);
    BHT_EQ(victim.device_ns, 0); /* the times are its own */
}

/* A worker's lies cost itself alone. */
TEST(no_more_than_has_passed) {
    static const char *const lies[] = {"1:lie_time:1=fail", "1:lie_negative:1=fail"};
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        for (uint64_t flags = 0; flags <= BH_SUBMIT_TIMED; flags++) {
            struct stage s = set_up(lies[i]);
            const bh_verdict verdict = fx_verdict(submit(&s, flags));
            if (verdict.status != BH_PROTOCOL) {
                BHT_FAIL("%s, %llu: %s: it is believed", lies[i], (unsigned long long)flags,
                         bh_status_name(verdict.status));
            }
            BHT_EQ(verdict.reason, BH_REASON_DEVICE_TIME);
            BHT_EQ(verdict.device_ns, 0);
            expect(submit(&s, flags), flags);
            fx_release_all();
        }
    }
}

TEST(unknown_flags_are_refused) {
    struct stage s = set_up(NULL);
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .flags = UINT64_C(1) << 40 | BH_SUBMIT_TIMED};
    bh_detail detail;
    BHT_EQ(bh_submit(s.stream, &info, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_UNKNOWN_BIT);
}
