/* Device memory on streams that run on another device (D4): this machine has one. */
#include "puppet.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/assignment.h"

#include <stdio.h>
#include <stdlib.h>

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

static bh_stream *other;
static bh_buffer *buffer; /* in the memory of "one", where puppet.stream is */

static void set_up(void) {
    other = puppet_stream("other", NULL);
    runs_on(puppet.stream, "one");
    buffer =
        fx_buffer_with(puppet.context, 64,
                       (bh_buffer_options){.stream = puppet.stream, .memory = BH_MEMORY_DEVICE});
}

BHT_AT_START(puppet_around(set_up, NULL))

/* Ends the copies of the library, which no worker will run; a cancel spares them. */
static void end_copies(void) {
    BHT_EQ(bh_stream_cancel(puppet.stream), BH_OK);
    BHT_EQ(bh_stream_cancel(other), BH_OK);
    bhi_context_lock(puppet.context);
    BHT_TRUE(!bhi_list_empty(&puppet.stream->core.queue));
    bhi_stream_end_queued(&other->core, BH_CANCELLED, "");
    bhi_stream_end_queued(&puppet.stream->core, BH_CANCELLED, "");
    bhi_context_pump_unlock(puppet.context);
}

TEST(refused_when_it_is_submitted) {
    bh_detail detail;
    runs_on_one_that(false, other, "two"); /* there is nowhere to move it to */
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = buffer, .size = BH_WHOLE_SIZE}};
    const bh_submit_info info = {.struct_size = sizeof info, .commands = &fill, .command_count = 1};
    BHT_EQ(bh_submit(other, &info, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "memory of device one");
    BHT_STR_HAS(detail.message, "stream other runs on two");
    runs_on(other, "one");
    BHT_EQ(bh_event_cancel(fx_fill(other, buffer, 0)), BH_OK);
}

static void runs_on_gpu(bh_stream *stream, const char *selector) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    worker->devices = calloc(1, sizeof *worker->devices); /* released with it */
    BHT_TRUE(worker->devices);
    worker->device_count = worker->device_capacity = 1;
    *worker->devices =
        (struct bhi_msg_device){.chosen = 1, .device_type = 2, .uuid = {1}, .name = "H200"};
    snprintf(worker->core.device, sizeof worker->core.device, "%s", selector);
    bhi_context_lock(stream->context);
    bhi_stream_learn_device(stream, worker);
    bhi_context_unlock(stream->context);
}

/* Neither of the two interfaces takes what the other has made. */
TEST(a_gpu_is_another_device_for_cuda) {
    static const char *const selectors[] = {"nvidia:0", "cuda:0"};
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = buffer, .size = BH_WHOLE_SIZE}};
    const bh_submit_info info = {.struct_size = sizeof info, .commands = &fill, .command_count = 1};
    runs_on_gpu(other, "cuda:0");
    for (size_t i = 0; i < BHT_COUNT(selectors); i++) {
        bh_detail detail = {0};
        bh_event *event = NULL;
        runs_on_gpu(puppet.stream, selectors[i]);
        BHT_EQ(bh_submit(other, &info, &event, &detail), i == 0 ? BH_INVALID_ARGUMENT : BH_OK);
        if (i == 0) {
            BHT_STR_HAS(detail.message, "memory of device H200 (");
            BHT_STR_HAS(detail.message, "stream other runs on H200 (CUDA)");
        } else {
            BHT_EQ(bh_event_cancel(event), BH_OK);
        }
    }
}

/* The other stream had no worker then: nobody knew where it runs. */
TEST(refused_when_its_turn_comes) {
    bh_event *event = fx_fill(other, buffer, 0);
    runs_on(other, "two");
    puppet_worker(BHI_RUNNING);
    puppet_worker(BHI_RUNNING);
    BHT_EQ(bhi_assignment_turn(puppet.context), BH_FOREVER);
    const bh_verdict verdict = fx_verdict(event);
    BHT_EQ(verdict.status, BH_BINDING_MISMATCH);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_STR_HAS(verdict.message, "memory of device one");
    BHT_STR_HAS(verdict.message, "stream other runs on two");
}

/* It reads a copy on its own device, which is charged to it, and made once. */
TEST(read_through_a_copy) {
    runs_on(other, "two");
    bh_buffer *host = fx_buffer(puppet.context, 64);
    uint64_t charged = 0;
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_event_cancel(fx_copy(other, buffer, host)), BH_OK);
        bhi_context_lock(puppet.context);
        BHT_TRUE(other->device_memory >= 64 && (!i || other->device_memory == charged));
        charged = other->device_memory;
        bhi_context_unlock(puppet.context);
    }
    end_copies();
}

/* It moves to the device where it is written, with the submission (tests/fault/moves.c). */
TEST(moves_when_it_is_written) {
    runs_on(other, "two");
    bh_event *event = fx_fill(other, buffer, 0);
    bhi_context_lock(puppet.context);
    BHT_TRUE(buffer->place && buffer->place->device->stream == other);
    BHT_TRUE(puppet.stream->device_memory >= 64); /* the copy still needs it */
    BHT_EQ(other->device_memory, puppet.stream->device_memory);
    bhi_context_unlock(puppet.context);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    end_copies();
    bhi_context_lock(puppet.context);
    BHT_EQ(puppet.stream->device_memory, 0);
    BHT_EQ(buffer->device->state, BHI_DEVICE_LEFT);
    bhi_context_unlock(puppet.context);
}
