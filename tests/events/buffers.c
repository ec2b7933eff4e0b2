/* Cases 21 to 27 of docs/semantics.md: buffers live as long as the device needs them.
 *
 * Those that are about retention are run a second time, with retention switched off in the test
 * build of the library (B4): what they say then is in ablated.cmake. */
#include "stage.h"

#include <unistd.h>

#define MANY 8u

static bh_buffer *buffer_for(struct stage *s, bh_stream *stream, float value) {
    const bh_buffer_options options = {.struct_size = sizeof options, .stream = stream};
    bh_buffer *buffer = NULL;
    BHT_EQ(bh_buffer_create(s->context, STAGE_FLOATS * sizeof(float), &options, &buffer, NULL),
           BH_OK);
    float *floats = (float *)(void *)fx_pointer(buffer);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        floats[i] = value;
    }
    return buffer;
}

static void expect_all(bh_buffer *buffer, float value, const char *otherwise) {
    float floats[STAGE_FLOATS];
    BHT_EQ(bh_buffer_read(buffer, 0, floats, sizeof floats, FX_SECONDS, NULL), BH_OK);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        if (floats[i] != value) {
            BHT_FAIL("%s: element %u is %g, must be %g", otherwise, i, (double)floats[i],
                     (double)value);
        }
    }
}

static void open_gate(struct stage *s) {
    fx_open(s->word);
    ev_ready(s->bad);
}

/* Buffers of the same size, made in another thread, for any stream and for none, full of sevens. */
struct others {
    struct stage *stage;
    bh_buffer *buffers[MANY];
};

static void *make_others(void *argument) {
    struct others *o = argument;
    bh_stream *const streams[] = {o->stage->a, NULL, o->stage->b};
    for (uint32_t i = 0; i < MANY; i++) {
        o->buffers[i] = buffer_for(o->stage, streams[i % BHT_COUNT(streams)], 7);
    }
    return NULL;
}

static struct others others_elsewhere(struct stage *s) {
    struct others others = {.stage = s};
    bht_start(make_others, &others);
    bht_join();
    return others;
}

static void release_others(struct others *o) {
    for (uint32_t i = 0; i < MANY; i++) {
        expect_all(o->buffers[i], 7, "what is in flight wrote into memory that it no longer has");
        bh_buffer_release(o->buffers[i]);
    }
}

/* -- 21, 22: dropped in flight, allocated elsewhere -------------------------------------------- */

/* |stream|: a's lane holds it behind the gate; b's queue holds it, since it waits for the gate. */
static void temporary(bool in_lane) {
    struct stage s = stage_open();
    bh_stream *stream = in_lane ? s.a : s.b;
    bh_buffer *temporary = buffer_for(&s, stream, 3);
    bh_event *event = ev_square(&s, stream, temporary, s.y, &s.bad, in_lane ? 0 : 1);
    bh_buffer_release(temporary); /* every handle there is */
    struct others others = others_elsewhere(&s);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    open_gate(&s);
    ev_ready(event);
    expect_all(s.y, 9, "its input was issued again in flight");
    release_others(&others);
    ev_well(&s);
}

TEST(case_21_a_temporary_in_a_lane_keeps_its_memory) {
    temporary(true);
}

TEST(case_21_a_temporary_in_a_queue_keeps_its_memory) {
    temporary(false);
}

TEST(case_22_a_dropped_output_keeps_its_memory) {
    struct stage s = stage_open();
    bh_buffer *output = buffer_for(&s, s.a, 3);
    bh_event *event = ev_square(&s, s.a, s.x, output, NULL, 0);
    bh_buffer_release(output);
    struct others others = others_elsewhere(&s);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    open_gate(&s);
    ev_ready(event);
    release_others(&others);
    ev_well(&s);
}

/* -- 23: trimming ------------------------------------------------------------------------------ */

TEST(case_23_trimming_spares_what_is_in_flight) {
    struct stage s = stage_open();
    bh_buffer *idle = buffer_for(&s, s.b, 1), *in = buffer_for(&s, s.b, 3);
    bh_event *event = ev_square(&s, s.b, in, s.y, &s.bad, 1);
    bh_buffer_release(idle);
    bh_buffer_release(in);
    BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    bh_stats stats = fx_stats(s.context);
    BHT_EQ(stats.pool_bytes, 0);
    open_gate(&s);
    ev_ready(event);
    expect_all(s.y, 9, "its input was trimmed in flight");
    BHT_EQ(stats.pool_evictions, 1); /* the one that nobody used */
    ev_well(&s);
}

/* -- 24: retained or refused ------------------------------------------------------------------- */

TEST(case_24_a_bound_handle_is_retained) {
    struct stage s = stage_open();
    bh_kernel *square = fx_kernel(s.context, "square");
    const bh_binding bindings[] = {bh_bind_read(0, buffer_for(&s, s.b, 3)), bh_bind_write(1, s.y)};
    bh_event *event = fx_command(s.b, fx_dispatch(square, bindings, 2), &s.bad, 1);
    bh_kernel_release(square);
    open_gate(&s);
    ev_ready(event);
    expect_all(s.y, 9, "wrong bytes");
    ev_well(&s);
}

static void refused(bh_stream *stream, bh_command command, const char *what) {
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    bh_event *event = NULL;
    bh_detail detail;
    BHT_EQ(bh_submit(stream, &info, &event, &detail), BH_INVALID_ARGUMENT);
    BHT_TRUE(!event);
    BHT_STR_HAS(detail.message, what);
    BHT_STR_HAS(detail.message, "was released");
}

TEST(case_24_a_handle_without_a_reference_is_refused) {
    struct stage s = stage_open();
    bh_buffer *gone = buffer_for(&s, s.b, 3);
    bh_event *event = ev_square(&s, s.b, gone, s.y, &s.bad, 1);
    bh_buffer_release(gone); /* a submission has it still: that is no reference of the caller's */
    const bh_binding bindings[] = {bh_bind_read(0, gone), bh_bind_write(1, s.z)};
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = gone, .size = BH_WHOLE_SIZE}};
    const bh_command from = {.type = BH_COMMAND_COPY,
                             .copy = {.src = gone, .dst = s.z, .size = BH_WHOLE_SIZE}};
    const bh_command to = {.type = BH_COMMAND_COPY,
                           .copy = {.src = s.x, .dst = gone, .size = BH_WHOLE_SIZE}};
    refused(s.b, fx_dispatch(s.square, bindings, 2), "buffer");
    refused(s.b, fill, "dst");
    refused(s.b, from, "src");
    refused(s.b, to, "dst");
    open_gate(&s);
    fx_verdict(event);
    ev_well(&s);
}

static void expect_none(struct stage *s) {
    if (fx_stats(s->context).pool_blocks) {
        BHT_FAIL("it was released before its submission had ended");
    }
}

/* -- 25: when ---------------------------------------------------------------------------------- */

TEST(case_25_temporaries_go_at_their_own_end) {
    struct stage s = stage_open_with(NULL, BH_FOREVER);
    bh_buffer *temporary = buffer_for(&s, s.a, 0);
    volatile uint32_t *word = fx_pointer(temporary);
    bh_event *first = fx_gate(s.a, s.hang, temporary);
    fx_await_gate(temporary);
    bh_buffer_release(temporary);
    expect_none(&s);
    bh_event *second = fx_gate(s.a, s.hang, s.gate); /* the stream is not going to be idle */
    BHT_EQ(fx_stats(s.context).pool_blocks, 0);
    fx_open(word);
    ev_ready(first);
    fx_await_gate(s.gate);
    WAIT_UNTIL(fx_stats(s.context).pool_blocks == 1, 20000);
    BHT_EQ(bh_event_query(second), BH_EVENT_PENDING);
    /* And it can be had at once. */
    bh_buffer *next = buffer_for(&s, s.a, 1);
    BHT_TRUE(fx_pointer(next) == word);
    fx_open(s.word);
    ev_ready(second);
    ev_well(&s);
}

/* -- 26: what is not registered ---------------------------------------------------------------- */

TEST(case_26_unregistered_names_kernel_and_slot) {
    struct stage s = stage_open();
    bh_buffer *gone = buffer_for(&s, s.b, 3);
    bh_buffer_release(gone);
    bh_buffer *const wrong[] = {NULL, gone};
    for (size_t i = 0; i < BHT_COUNT(wrong); i++) {
        const bh_binding bindings[] = {bh_bind_read(0, s.x), bh_bind_write(1, wrong[i])};
        refused(s.b, fx_dispatch(s.square, bindings, 2),
                "command 0: set 0 binding 1 of kernel \"square\"");
    }
    open_gate(&s);
    ev_well(&s);
}

/* Nothing that was registered when it was submitted is unregistered when it runs. With retention
 * off it is, and the worker says which kernel, and which slot. */
TEST(case_26_what_runs_is_registered) {
    struct stage s = stage_open();
    bh_buffer *in = buffer_for(&s, s.b, 3);
    bh_event *event = ev_square(&s, s.b, in, s.y, &s.bad, 1);
    bh_buffer_release(in);
    open_gate(&s);
    ev_ready(event);
    ev_well(&s);
}

/* -- 27: once ---------------------------------------------------------------------------------- */

/* The temporary came back once: there is one block, and it is issued once. */
static void expect_one_block(struct stage *s) {
    WAIT_UNTIL(fx_stats(s->context).pool_blocks == 1, 20000);
    WAIT_UNTIL(!fx_describes(s->context, ", dying; stream "), 20000); /* nobody else has it (B3) */
    BHT_EQ(fx_stats(s->context).pool_bytes, sysconf(_SC_PAGESIZE));
    bh_buffer *first = buffer_for(s, s->a, 1), *second = buffer_for(s, s->a, 2);
    BHT_EQ(fx_stats(s->context).pool_blocks, 0);
    expect_all(first, 1, "two buffers share their memory");
    bh_buffer_release(first);
    bh_buffer_release(second);
    BHT_EQ(fx_stats(s->context).pool_blocks, 2);
    BHT_EQ(bh_context_trim(s->context, 0, NULL), BH_OK);
    BHT_EQ(fx_stats(s->context).pool_blocks, 0);
}

TEST(case_27_a_killed_submission_releases_once) {
    struct stage s = stage_open_with(NULL, BH_FOREVER);
    bh_buffer *temporary = buffer_for(&s, s.a, 0);
    bh_event *event = fx_gate(s.a, s.hang, temporary);
    fx_await_gate(temporary);
    bh_buffer_release(temporary);
    expect_none(&s);
    fx_kill(s.pid, SIGKILL);
    ev_poisoned(event, BH_WORKER_SIGNAL, event, 0, BH_EXECUTED_UNKNOWN);
    expect_one_block(&s);
    ev_well(&s);
}

TEST(case_27_a_failed_submission_releases_once) {
    struct stage s = stage_open();
    bh_buffer *temporary = buffer_for(&s, s.a, 0);
    bh_event *event = ev_refused(&s, s.a, temporary); /* by its worker, behind the gate */
    bh_buffer_release(temporary);
    expect_none(&s);
    open_gate(&s);
    ev_poisoned(event, BH_BINDING_MISMATCH, event, 0, BH_EXECUTED_NO);
    expect_one_block(&s);
    ev_well(&s);
}

TEST(case_27_a_cancelled_or_poisoned_submission_releases_once) {
    struct stage s = stage_open();
    bh_buffer *temporary = buffer_for(&s, s.b, 0);
    bh_event *event = ev_square(&s, s.b, temporary, s.y, &s.bad, 1);
    bh_buffer_release(temporary);
    expect_none(&s);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    ev_poisoned(event, BH_CANCELLED, event, 0, BH_EXECUTED_NO);
    expect_one_block(&s);
    bh_event_release(event);

    temporary = buffer_for(&s, s.b, 0);
    event = ev_square(&s, s.b, temporary, s.z, &s.bad, 1);
    bh_buffer_release(temporary);
    expect_none(&s);
    fx_kill(s.pid, SIGKILL); /* it waits for the one that dies */
    ev_poisoned(event, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    expect_one_block(&s);
    ev_well(&s);
}

/* The third command is wrong, the first two had bound their buffers. */
TEST(case_27_a_refused_submission_releases_once) {
    struct stage s = stage_open();
    bh_buffer *temporary = buffer_for(&s, s.b, 0);
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = temporary, .size = BH_WHOLE_SIZE}};
    const bh_command commands[] = {fill, fill, {.type = BH_COMMAND_FILL}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = commands, .command_count = 3};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(s.b, &info, &event, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(fx_stats(s.context).pool_blocks, 0);
    bh_buffer_release(temporary);
    expect_one_block(&s);
    open_gate(&s);
    ev_well(&s);
}
