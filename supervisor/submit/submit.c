/* bh_submit: has the lane record encoded, works out what the submission depends on, and queues it.
 */
#include "supervisor/submit/submit.h"
#include "base/array.h"
#include "base/detail.h"
#include "base/futex.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/payload.h"
#include "supervisor/context/pump.h"
#include "supervisor/event/callback.h"
#include "supervisor/event/event.h"
#include "supervisor/event/pending.h"
#include "supervisor/file/file.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/encode.h"
#include "supervisor/submit/replicate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY   512u /* bytes of a record */
#define COPY_DEADLINE_NS (60ull * 1000000000)

/* What it has run that somebody else wrote, as the core tells one from another: its kernel or its
 * file, trusted or not; several kernels are nobody else's. 0: copies and fills only. */
static uint64_t payload_code(const struct bhi_payload *payload) {
    if (payload->file) {
        return payload->file->info.file;
    }
    for (uint32_t i = 1; i < payload->kernel_count; i++) {
        if (payload->kernels[i]->body != payload->kernels[0]->body) {
            return payload->submission.event->id;
        }
    }
    if (!payload->kernel_count) {
        return 0;
    }
    /* By its hash: a kernel that is made anew for each launch is the same code all the same. */
    uint64_t code;
    memcpy(&code, payload->kernels[0]->body->hash, sizeof code);
    return code | 1;
}

static struct bhi_payload *start(bh_stream *stream, uint32_t command_count, uint64_t capacity) {
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

/* Takes the lock. From here on it has an id, and ends in finish(). */
static bh_status enter(struct bhi_payload *payload, const char *call, bh_detail *detail) {
    struct bh_event *event = payload->submission.event;
    bh_context *context = event->context;
    bhi_context_lock(context);
    event->id = bhi_context_new_id(context);
    event->verdict.submitted_ns = bhi_now_ns();
    return context->closed ? bhi_fail(detail, BH_CLOSED, 0, "%s: the context was destroyed", call)
                           : BH_OK;
}

/* Queues it, or gives it up where |status| is not BH_OK, and drops the lock. *out_event (NULL is
 * fine) is referenced, and has |handles| of the caller's references. */
static bh_status finish(struct bhi_payload *payload, bh_status status, bh_event *const *waits,
                        uint32_t wait_count, uint32_t handles, const char *call,
                        bh_event **out_event, bh_detail *detail) {
    struct bhi_submission *submission = &payload->submission;
    struct bh_event *event = submission->event;
    bh_context *context = event->context;
    submission->code = payload_code(payload);
    if (status == BH_OK && !bhi_submission_depend(submission, waits, wait_count)) {
        status = bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    }
    if (status != BH_OK) {
        bhi_submission_abandon(submission);
        bhi_context_pump_unlock(context);
        return status;
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        struct bh_buffer *buffer =
            BHI_CONTAINER(submission->uses[i].content, struct bh_buffer, content);
        if (buffer->device && submission->uses[i].writes) {
            buffer->device->version = event->id;
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

bh_status bhi_internal_submit(struct bh_stream *stream,
                              const struct bhi_internal_submission *internal,
                              struct bh_event **out_event, bh_detail *detail) {
    struct bhi_payload *payload = start(stream, 1, sizeof *payload->record + internal->size);
    if (!payload) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", internal->call);
    }
    memcpy(bhi_encode_append(payload, internal->size), internal->command, internal->size);
    payload->submission.deadline_ns = internal->deadline_ns;
    payload->submission.failure_reported = internal->failure_uncounted;
    payload->file = internal->file;
    if (payload->file) {
        bhi_file_ref(payload->file);
    }
    bh_status status = enter(payload, internal->call, detail);
    if (status == BH_OK &&
        ((internal->reads && !bhi_encode_use(payload, internal->reads, true, false, false)) ||
         (internal->fills && !bhi_encode_use(payload, internal->fills, false, true, true)))) {
        status = bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", internal->call);
    }
    return finish(payload, status, &internal->after, internal->after ? 1 : 0, 0, internal->call,
                  out_event, detail);
}

bh_status bhi_internal_submit_copy(struct bh_stream *stream, const struct bhi_internal_copy *copy,
                                   struct bh_event **out_event, bh_detail *detail) {
    const struct bhi_cmd_copy command = {
        .header = {.type = BHI_CMD_COPY, .size = sizeof command},
        .src = copy->src->id,
        .dst = copy->dst->id,
        .src_offset = copy->src_offset,
        .dst_offset = copy->dst_offset,
        .bytes = copy->bytes,
    };
    struct bhi_payload *payload = start(stream, 1, sizeof *payload->record + sizeof command);
    if (!payload) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", copy->call);
    }
    memcpy(bhi_encode_append(payload, sizeof command), &command, sizeof command);
    payload->submission.deadline_ns =
        stream->deadline_ns == BH_FOREVER ? COPY_DEADLINE_NS : stream->deadline_ns;
    payload->submission.failure_reported = true;
    const bool whole = copy->replaces_content || copy->bytes == copy->dst->size;
    bh_status status = enter(payload, copy->call, detail);
    if (status == BH_OK && (!bhi_encode_use(payload, copy->src, true, false, false) ||
                            !bhi_encode_use(payload, copy->dst, copy->reads_target, true,
                                            whole && !copy->reads_target))) {
        status = bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", copy->call);
    }
    return finish(payload, status, &copy->after, copy->after ? 1 : 0, 0, copy->call, out_event,
                  detail);
}

bh_status bhi_internal_submit_marker(struct bh_stream *stream, const char *call,
                                     struct bh_event **out_event, bh_detail *detail) {
    struct bhi_payload *payload = start(stream, 0, sizeof *payload->record);
    if (!payload) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    }
    payload->submission.deadline_ns = BH_FOREVER;
    payload->submission.failure_reported = true;
    return finish(payload, enter(payload, call, detail), NULL, 0, 0, call, out_event, detail);
}

static bh_status check_info(const bh_stream *stream, const bh_submit_info *info,
                            bh_detail *detail) {
    if (!info) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_submit: info is NULL");
    }
    if (info->flags & ~(uint64_t)BH_SUBMIT_TIMED) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_submit: info.flags 0x%llx has an unknown bit",
                        (unsigned long long)info->flags);
    }
    if (info->command_count && !info->commands) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_submit: commands is NULL, command_count %u", info->command_count);
    }
    if (info->command_count > BHI_MAX_COMMANDS) {
        return bhi_fail(detail, BH_TOO_LARGE, 0, "bh_submit: more than %u commands",
                        BHI_MAX_COMMANDS);
    }
    if (info->wait_count && !info->waits) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_submit: waits is NULL");
    }
    for (uint32_t i = 0; i < info->wait_count; i++) {
        if (!BHI_LIVE(info->waits[i])) {
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_submit: waits[%u] is NULL or was released", i);
        }
        if (info->waits[i]->context != stream->context) {
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_submit: waits[%u] belongs to another context", i);
        }
    }
    return BH_OK;
}

/* |prepare|: instead of info's commands, compile this kernel. |many|: see struct bhi_encoder. Not
 * BH_OK, with replicas->wanted: it is to be called again when that is there. */
static bh_status submit_once(const char *call, bool many, bh_stream *stream,
                             const bh_submit_info *info, struct bh_kernel *prepare,
                             struct bhi_replicas *replicas, bh_event **out_event,
                             bh_detail *detail) {
    struct bhi_payload *payload = start(stream, prepare ? 1 : info->command_count, FIRST_CAPACITY);
    if (!payload) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    }
    struct bhi_submission *submission = &payload->submission;
    struct bhi_encoder encoder = {
        .payload = payload, .detail = detail, .call = call, .many = many, .replicas = replicas};
    submission->runs_kernel = !prepare;
    submission->reports_device_time = info->flags & BH_SUBMIT_TIMED;
    payload->record->flags = submission->reports_device_time ? BHI_RECORD_TIMED : 0;
    submission->deadline_ns = info->deadline_ns ? info->deadline_ns : stream->deadline_ns;

    bh_status status = enter(payload, call, detail);
    if (prepare && status == BH_OK) {
        status = bhi_encode_prepare(&encoder, prepare);
    }
    for (uint32_t i = 0; !prepare && i < info->command_count && status == BH_OK &&
                         payload->record->size <= BHI_LANE_MAX_RECORD;
         i++) {
        encoder.command = i;
        status = bhi_encode_command(&encoder, &info->commands[i], stream->context);
    }
    if (status == BH_OK && payload->record->size > BHI_LANE_MAX_RECORD) {
        status = bhi_fail(detail, BH_TOO_LARGE, 0,
                          "%s: %llu bytes encoded, over the limit of %u: split it", call,
                          (unsigned long long)payload->record->size, BHI_LANE_MAX_RECORD);
    }
    submission->abortable = payload->kernel_count > 0;
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        submission->abortable &= !payload->kernels[i]->body->trusted;
    }
    submission->apart = info->alone ? BHI_APART_ALL : BHI_APART_NOT;
    return finish(payload, status, info->waits, info->wait_count, 1, call, out_event, detail);
}

static bh_status make_wanted(struct bh_stream *stream, struct bhi_replicas *replicas,
                             const char *call, bh_detail *detail) {
    struct bhi_made_replica made = {.of = replicas->wanted};
    replicas->wanted = NULL;
    if (!BHI_ARRAY_RESERVE(replicas->made, replicas->capacity, replicas->count + 1)) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    }
    bh_status status = bhi_replicate(stream, made.of, call, &made.copy, detail);
    if (status == BH_OK) {
        replicas->made[replicas->count++] = made;
    }
    return status;
}

static bh_status submit(const char *call, bool many, bh_stream *stream, const bh_submit_info *info,
                        struct bh_kernel *prepare, bh_event **out_event, bh_detail *detail) {
    struct bhi_replicas replicas = {0};
    bh_status status;
    do {
        status = submit_once(call, many, stream, info, prepare, &replicas, out_event, detail);
    } while (replicas.wanted && (status = make_wanted(stream, &replicas, call, detail)) == BH_OK);
    if (replicas.count) {
        bhi_context_lock(stream->context);
        for (uint32_t i = 0; i < replicas.count; i++) {
            bhi_buffer_unref_locked(replicas.made[i].copy);
        }
        bhi_context_pump_unlock(stream->context);
    }
    free(replicas.made);
    return status;
}

static bh_status check_stream(const char *call, bh_stream *stream, bh_detail *detail) {
    if (!BHI_LIVE(stream)) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: stream is NULL or was released", call);
    }
    return bhi_context_forked(stream->context) ? bhi_context_refuse(call, detail) : BH_OK;
}

bh_status bhi_submit(bh_stream *stream, const bh_submit_info *info, bh_event **out_event,
                     bh_detail *detail) {
    /* Written last: it may be an element of info->waits. */
    bh_event *event = NULL;
    bh_status status = check_stream("bh_submit", stream, detail);
    if (status == BH_OK) {
        status = check_info(stream, info, detail);
    }
    if (status == BH_OK) {
        status = submit("bh_submit", true, stream, info, NULL, out_event ? &event : NULL, detail);
    }
    if (out_event) {
        *out_event = event;
    }
    return status;
}

bh_status bhi_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                     const bh_binding *bindings, uint32_t binding_count, const void *push,
                     uint32_t push_size, bh_event **out_event, bh_detail *detail) {
    if (out_event) {
        *out_event = NULL;
    }
    bh_status status = check_stream("bh_launch", stream, detail);
    if (status != BH_OK) {
        return status;
    }
    if (!groups) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_launch: groups is NULL");
    }
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .kernel = kernel,
        .groups = {groups[0], groups[1], groups[2]},
        .bindings = bindings,
        .binding_count = binding_count,
        .push = push,
        .push_size = push_size,
    };
    const bh_submit_info info = {.commands = &command, .command_count = 1};
    return submit("bh_launch", false, stream, &info, NULL, out_event, detail);
}

bh_status bhi_submit_prepare(const char *call, bh_kernel *kernel, bh_stream *stream,
                             bh_event **out_event, bh_detail *detail) {
    if (!BHI_LIVE(kernel)) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: kernel is NULL or was released", call);
    }
    bh_status status = check_stream(call, stream, detail);
    if (status != BH_OK) {
        return status;
    }
    if (kernel->context != stream->context) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "%s: kernel and stream belong to different contexts", call);
    }
    const bh_submit_info info = {0};
    return submit(call, false, stream, &info, kernel, out_event, detail);
}

BH_API bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream, bh_event **out_event,
                                   bh_detail *detail) {
    if (out_event) {
        *out_event = NULL;
    }
    return bhi_submit_prepare("bh_kernel_prepare", kernel, stream, out_event, detail);
}
