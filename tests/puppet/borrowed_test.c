/* Device memory on streams that run on another device (D4): this machine has one. */
#include "puppet.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/assignment.h"

#include <stdio.h>

/* |shares|: its memory can be shared between processes. */
static void runs_on_one_that(bool shares, bh_stream *stream, const char *name) {
    bhi_context_lock(stream->context);
    stream->runs_on = (struct bhi_stream_device){.known = true, .is_cpu = shares};
    stream->runs_on.uuid[0] = (uint8_t)name[0];
    snprintf(stream->runs_on.name, sizeof stream->runs_on.name, "%s", name);
    bhi_context_unlock(stream->context);
}

static void runs_on(bh_stream *stream, const char *name) {
    runs_on_one_that(true, stream, name);
}

struct scene {
    struct puppet p;
    bh_stream *other;
    bh_buffer *buffer; /* in the memory of "one", where p.stream is */
};

static struct scene set_up(void) {
    struct scene s = {0};
    puppet_open(&s.p);
    bh_stream_options options = {.struct_size = sizeof options};
    options.name = "other";
    BHT_EQ(bh_stream_create(s.p.context, &options, &s.other, NULL), BH_OK);
    runs_on(s.p.stream, "one");
    bh_buffer_options buffer = {.struct_size = sizeof buffer};
    buffer.stream = s.p.stream;
    buffer.memory = BH_MEMORY_DEVICE;
    BHT_EQ(bh_buffer_create(s.p.context, 64, &buffer, &s.buffer, NULL), BH_OK);
    return s;
}

static void tear_down(struct scene *s) {
    bh_buffer_release(s->buffer);
    bh_stream_release(s->other);
    puppet_close(&s->p);
}

static bh_status fill(struct scene *s, bh_event **out_event, bh_detail *detail) {
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = s->buffer, .size = BH_WHOLE_SIZE}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    return bh_submit(s->other, &info, out_event, detail);
}

/* Ends the copies of the library, which no worker will run; a cancel spares them. */
static void end_copies(struct scene *s) {
    BHT_EQ(bh_stream_cancel(s->p.stream), BH_OK);
    BHT_EQ(bh_stream_cancel(s->other), BH_OK);
    bhi_context_lock(s->p.context);
    BHT_TRUE(!bhi_list_empty(&s->p.stream->core.queue));
    bhi_stream_end_queued(&s->other->core, BH_CANCELLED, "");
    bhi_stream_end_queued(&s->p.stream->core, BH_CANCELLED, "");
    bhi_context_pump_unlock(s->p.context);
}

TEST(refused_when_it_is_submitted) {
    struct scene s = set_up();
    bh_detail detail;
    runs_on_one_that(false, s.other, "two"); /* there is nowhere to move it to */
    BHT_EQ(fill(&s, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "memory of device one");
    BHT_STR_HAS(detail.message, "stream other runs on two");
    runs_on(s.other, "one");
    bh_event *event = NULL;
    BHT_EQ(fill(&s, &event, &detail), BH_OK);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    bh_event_release(event);
    tear_down(&s);
}

/* The other stream had no worker then: nobody knew where it runs. */
TEST(refused_when_its_turn_comes) {
    struct scene s = set_up();
    bh_event *event = NULL;
    BHT_EQ(fill(&s, &event, NULL), BH_OK);
    runs_on(s.other, "two");
    puppet_worker(&s.p, BHI_RUNNING);
    puppet_worker(&s.p, BHI_RUNNING);
    BHT_EQ(bhi_assignment_turn(s.p.context), BH_FOREVER);
    const bh_verdict verdict = puppet_verdict(event);
    BHT_EQ(verdict.status, BH_BINDING_MISMATCH);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_STR_HAS(verdict.message, "memory of device one");
    BHT_STR_HAS(verdict.message, "stream other runs on two");
    bh_event_release(event);
    tear_down(&s);
}

/* It reads a copy on its own device, which is charged to it, and made once. */
TEST(read_through_a_copy) {
    struct scene s = set_up();
    runs_on(s.other, "two");
    bh_buffer *host = NULL;
    BHT_EQ(bh_buffer_create(s.p.context, 64, NULL, &host, NULL), BH_OK);
    const bh_command command = {.type = BH_COMMAND_COPY,
                                .copy = {.src = s.buffer, .dst = host, .size = BH_WHOLE_SIZE}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    uint64_t charged = 0;
    for (int i = 0; i < 2; i++) {
        bh_event *event = NULL;
        BHT_EQ(bh_submit(s.other, &info, &event, NULL), BH_OK);
        BHT_EQ(bh_event_cancel(event), BH_OK);
        bh_event_release(event);
        bhi_context_lock(s.p.context);
        BHT_TRUE(s.other->device_memory >= 64 && (!i || s.other->device_memory == charged));
        charged = s.other->device_memory;
        bhi_context_unlock(s.p.context);
    }
    end_copies(&s);
    bh_buffer_release(host);
    tear_down(&s);
}

/* It moves to the device where it is written, with the submission (tests/fault/moves.c). */
TEST(moves_when_it_is_written) {
    struct scene s = set_up();
    runs_on(s.other, "two");
    bh_event *event = NULL;
    BHT_EQ(fill(&s, &event, NULL), BH_OK);
    bhi_context_lock(s.p.context);
    BHT_TRUE(s.buffer->place && s.buffer->place->device->stream == s.other);
    BHT_TRUE(s.p.stream->device_memory >= 64); /* the copy still needs it */
    BHT_EQ(s.other->device_memory, s.p.stream->device_memory);
    bhi_context_unlock(s.p.context);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    end_copies(&s);
    bhi_context_lock(s.p.context);
    BHT_EQ(s.p.stream->device_memory, 0);
    BHT_EQ(s.buffer->device->state, BHI_DEVICE_LEFT);
    bhi_context_unlock(s.p.context);
    bh_event_release(event);
    tear_down(&s);
}
