#include "supervisor/submit/queue.h"
#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/file/file.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the submission's code (core/submission.h): the number of its kernel, trusted or not, or
 * of its file. Several different kernels have one that is drawn from theirs: another submission of
 * the same ones has the same. 0: it has only copies and fills. */
static uint64_t payload_code(const struct bhi_payload *payload) {
    uint64_t code, mixed = 0;
    bool several = false;
    if (payload->file) {
        return payload->file->info.file;
    }
    if (!payload->kernel_count) {
        return 0;
    }
    code = bhi_kernel_body_code(payload->kernels[0]->body);
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        several |= payload->kernels[i]->body != payload->kernels[0]->body;
        mixed = (mixed ^ bhi_kernel_body_code(payload->kernels[i]->body)) *
                UINT64_C(0x9E3779B97F4A7C15);
        mixed ^= mixed >> 29;
    }
    return several ? mixed | 1 : code;
}

struct bhi_payload *bhi_payload_start(bh_stream *stream, uint32_t command_count,
                                      uint64_t capacity) {
    struct bhi_payload *payload = calloc(1, sizeof *payload);
    struct bh_event *event = bhi_event_create(stream->context);
    struct bhi_lane_record *record = calloc(1, capacity);
    if (!payload || !event || !record) {
        free(record);
        bhi_event_unref(event);
        free(payload);
        return NULL;
    }
    payload->record = record;
    payload->record_capacity = capacity;
    record->size = sizeof *record;
    record->command_count = command_count;
    bhi_submission_init(&payload->submission, &stream->core, event);
    return payload;
}

bh_status bhi_payload_enter(struct bhi_payload *payload, const char *call, bh_detail *detail) {
    struct bh_event *event = payload->submission.event;
    bh_context *context = event->context;
    bhi_context_lock(context);
    event->id = bhi_context_new_id(context);
    event->verdict.submitted_ns = bhi_now_ns();
    return context->closed ? BHI_FAIL(detail, call, BH_REASON_DESTROYED) : BH_OK;
}

/* Draws the fault that chaos injects into the submission. Copies of the library's own, which are made
 * again, get none. */
static void draw_fault(struct bhi_payload *payload) {
    struct bhi_submission *submission = &payload->submission;
    struct bh_stream *stream = bhi_stream_of(submission->stream);
    struct bh_context *context = stream->context;
    enum bhi_chaos_fault fault = BHI_CHAOS_NONE;
    if (stream->kind == BHI_WORKER_LOADER) {
        fault = bhi_chaos_load(&context->chaos);
    } else if (stream->kind == BHI_WORKER_DEVICE && submission->repeat != BHI_REPEAT_ALWAYS) {
        fault = bhi_chaos_submission(&context->chaos, stream->core.name, ++stream->chaos_draws);
    }
    if (fault != BHI_CHAOS_NONE && payload->record->command_count) {
        submission->injected = bhi_chaos_status(fault);
        payload->record->flags |= bhi_chaos_flags(&context->chaos, fault);
        bhi_context_say(context, BH_LOG_WARNING, "stream %s: event %llu gets %s (%s)",
                        stream->core.name, (unsigned long long)submission->event->id,
                        bhi_chaos_name(fault), context->chaos.from);
    }
}

bh_status bhi_payload_finish(struct bhi_payload *payload, bh_status status, bh_event *const *waits,
                             uint32_t wait_count, uint32_t handles, const char *call,
                             bh_event **out_event, bh_detail *detail) {
    struct bhi_submission *submission = &payload->submission;
    struct bh_event *event = submission->event;
    bh_context *context = event->context;
    submission->code = payload_code(payload);
    if (status == BH_OK && !bhi_submission_depend(submission, waits, wait_count)) {
        status = BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    if (status != BH_OK) {
        bhi_submission_abandon(submission);
        bhi_context_pump_unlock(context);
        return status;
    }
    if (context->chaos.from) {
        draw_fault(payload);
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        struct bh_buffer *buffer =
            BHI_CONTAINER(submission->uses[i].content, struct bh_buffer, content);
        if (buffer->device && submission->uses[i].writes) {
            const uint64_t writer = event->library ? event->content_of : event->id;
            buffer->device->version = event->id;
            if (writer || submission->uses[i].overwrites) {
                buffer->device->written_by = writer;
            }
            context->drop_replicas(context, buffer, NULL);
        }
    }
    if (out_event) {
        atomic_init(&event->handle.count, handles);
        bhi_event_ref(event);
        *out_event = event;
    }
    bhi_pending_add(event);
    context->wake_reactor |= bhi_stream_rests(bhi_stream_of(submission->stream));
    bhi_submission_enqueue(submission);
    bhi_context_pump_unlock(context);
    return BH_OK;
}
