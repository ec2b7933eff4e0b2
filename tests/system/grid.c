/* Grids whose three counts multiply to more than 32 bits hold. Such a grid runs whole, where the
 * device has the feature wholeGrids, or is refused before anything runs; never in part
 * (docs/decisions/0023-drivers-limits.md). The one test for every driver: it decides who has the feature. */
#include "fixture.h"

/* 2^32 workgroups with nothing to do take an NVIDIA H200 seconds. */
#define WHOLE_NS (120000 * bht_slowness() * FX_MS)

enum { FIRST, LAST, WRONG, GRID, WORDS = 8 };

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    bh_buffer *marks;
    bool whole;
};

static struct stage open_stage(void) {
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    size_t count = 0;
    struct stage s = {.context = fx_context(NULL)};
    bh_stream_options options = fx_stream_options();
    options.grace_ns = 1; /* a grid that began ends with its worker, not with its last workgroup */
    s.stream = fx_stream_with(s.context, options);
    BHT_EQ(bh_devices(s.context, devices, 8, &count, NULL), BH_OK);
    for (uint32_t i = 0; i < devices[0].feature_count; i++) {
        s.whole |= strcmp(devices[0].features[i], "wholeGrids") == 0;
    }
    s.kernel = fx_kernel(s.context, "grid");
    s.marks = fx_words(s.context, WORDS, 0);
    fx_expect_healthy_after(s.context, s.stream);
    return s;
}

static bh_event *launch(struct stage *s, const uint32_t groups[3], uint64_t deadline_ns) {
    const bh_binding binding = bh_bind_read_write(0, s->marks);
    bh_command command = fx_dispatch(s->kernel, &binding, 1);
    memcpy(command.dispatch.groups, groups, sizeof command.dispatch.groups);
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = deadline_ns};
    uint32_t *words = fx_pointer(s->marks); /* clean again */
    memset(words, 0, WORDS * sizeof *words);
    memcpy(&words[GRID], groups, 3 * sizeof *groups);
    return fx_submit(s->stream, &info);
}

static void expect_whole(struct stage *s, const uint32_t groups[3]) {
    bh_event *event = launch(s, groups, WHOLE_NS);
    BHT_EQ(bh_event_wait(event, WHOLE_NS + FX_SECONDS), BH_OK);
    const uint32_t *words = fx_pointer(s->marks);
    BHT_EQ(words[FIRST], 1);
    BHT_EQ(words[LAST], 1);
    BHT_EQ(words[WRONG], 0);
}

static void expect_refused(struct stage *s, const uint32_t groups[3], uint64_t product) {
    const pid_t pid = fx_ready(s->stream);
    const bh_verdict verdict = fx_expect(launch(s, groups, FX_SECONDS), BH_LIMIT_EXCEEDED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.reason, BH_REASON_WORKGROUPS);
    BHT_EQ(verdict.value, product);
    BHT_EQ(verdict.limit, UINT32_MAX);
    BHT_EQ(bh_stream_worker_pid(s->stream), pid);
    const uint32_t *words = fx_pointer(s->marks);
    BHT_EQ(words[FIRST], 0);
    BHT_EQ(words[LAST], 0);
}

static void expect_product(const uint32_t groups[3], uint64_t product) {
    struct stage s = open_stage();
    if (s.whole) {
        expect_whole(&s, groups);
    } else {
        expect_refused(&s, groups, product);
    }
}

/* Modulo 2^32 it is no workgroup at all. */
TEST(a_product_of_2_to_the_32) {
    expect_product((uint32_t[]){4096, 4096, 256}, 4294967296u);
}

/* Modulo 2^32 they are 7. */
TEST(a_product_that_wraps_to_a_few) {
    expect_product((uint32_t[]){61751, 6323, 11}, 4294967303u);
}

/* Modulo 2^32 they are 196,607. To run them all would take days. */
TEST(all_that_the_axes_allow) {
    static const uint32_t groups[3] = {65535, 65535, 65535};
    struct stage s = open_stage();
    if (!s.whole) {
        expect_refused(&s, groups, 281462092005375u);
    }
}

/* What 32 bits count is the driver's to run, however long that takes. */
TEST(no_more_than_32_bits_count) {
    static const uint32_t groups[3] = {65535, 65535, 1};
    struct stage s = open_stage();
    if (s.whole) {
        expect_whole(&s, groups);
    } else {
        bh_event *event = launch(&s, groups, 50 * bht_slowness() * FX_MS);
        BHT_EQ(fx_expect(event, BH_DEADLINE).executed, BH_EXECUTED_UNKNOWN);
    }
}

/* The doctor tries such a grid, and says what the device does with it; and it tries expressions. */
TEST(what_the_doctor_says) {
    static bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    struct stage s = open_stage();
    size_t count = 0, found = 0, computed = 0;
    BHT_EQ(bh_doctor(s.context, checks, BHT_COUNT(checks), &count, NULL), BH_OK);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].name, "arithmetic") == 0 && computed++ == 0 &&
            (checks[i].result != BH_CHECK_HOLDS || strstr(checks[i].text, " 0 of 0 "))) {
            BHT_FAIL("%s", checks[i].text);
        }
        if (strcmp(checks[i].name, "wholeGrids") == 0 && found++ == 0) { /* the first device's */
            BHT_EQ(checks[i].result, s.whole ? BH_CHECK_HOLDS : BH_CHECK_ABSENT);
            BHT_STR_HAS(
                checks[i].text,
                s.whole
                    ? " runs 4096 x 4096 x 256 workgroups, the first and the last"
                    : "none runs: its driver counts them in 32 bits, so such a grid is refused");
        }
    }
    BHT_GE(found, 1);
    BHT_GE(computed, 1);
}
