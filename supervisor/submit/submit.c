/* bh_submit and bh_launch: encode the lane record, find the dependencies, and queue the
 * submission. */
#include "supervisor/submit/submit.h"
#include "base/array.h"
#include "base/detail.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/encode.h"
#include "supervisor/submit/queue.h"
#include "supervisor/submit/replicate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 512u /* bytes of a record */
#define MOST_TRIES     8u   /* to move a buffer that other streams write meanwhile */

static bh_status check_info(const bh_stream *stream, const bh_submit_info *info,
                            bh_detail *detail) {
    BHI_NEED(info, "bh_submit", detail);
    if (info->flags & ~(uint64_t)BH_SUBMIT_TIMED) {
        return BHI_FAIL(detail, "bh_submit", BH_REASON_UNKNOWN_BIT, "info.flags",
                        .value = info->flags);
    }
    if (info->command_count && !info->commands) {
        return BHI_FAIL(detail, "bh_submit", BH_REASON_NULL, "commands");
    }
    if (info->command_count > BHI_MAX_COMMANDS) {
        return BHI_FAIL(detail, "bh_submit", BH_REASON_TOO_LARGE, "info.command_count",
                        .value = info->command_count, .limit = BHI_MAX_COMMANDS);
    }
    if (info->wait_count && !info->waits) {
        return BHI_FAIL(detail, "bh_submit", BH_REASON_NULL, "waits");
    }
    for (uint32_t i = 0; i < info->wait_count; i++) {
        if (!BHI_LIVE(info->waits[i])) {
            return BHI_FAIL(detail, "bh_submit", BH_REASON_RELEASED, "waits", .indexed = true,
                            .index = i);
        }
        if (info->waits[i]->context != stream->context) {
            return BHI_FAIL(detail, "bh_submit", BH_REASON_OTHER_CONTEXT, "waits", .indexed = true,
                            .index = i);
        }
    }
    return BH_OK;
}

/* Moves the buffers that the submission writes to its device. Called just before it is queued. Lock
 * held. */
static void move(const struct bhi_replicas *replicas) {
    for (uint32_t i = 0; i < replicas->count; i++) {
        const struct bhi_made_replica *made = &replicas->made[i];
        if (made->mover && bhi_buffer_place(made->mover) == made->of &&
            made->version == made->of->device->version) {
            bhi_buffer_move(made->mover, made->copy);
        }
    }
}

/* |prepare|: a kernel to compile, instead of info's commands. |many|: see struct bhi_encoder. If it
 * sets replicas->wanted, nothing was queued: make that replica and call it again. */
static bh_status submit_once(const char *call, bool many, bh_stream *stream,
                             const bh_submit_info *info, struct bh_kernel *prepare,
                             struct bhi_replicas *replicas, bh_event **out_event,
                             bh_detail *detail) {
    struct bhi_payload *payload =
        bhi_payload_start(stream, prepare ? 1 : info->command_count, FIRST_CAPACITY);
    if (!payload) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    struct bhi_submission *submission = &payload->submission;
    struct bhi_encoder encoder = {
        .payload = payload, .detail = detail, .call = call, .many = many, .replicas = replicas};
    submission->runs_kernel = !prepare;
    submission->repeat = prepare ? BHI_REPEAT_VICTIM : BHI_REPEAT_NEVER;
    submission->reports_device_time = info->flags & BH_SUBMIT_TIMED;
    payload->record->flags = submission->reports_device_time ? BHI_RECORD_TIMED : 0;
    submission->deadline_ns = info->deadline_ns ? info->deadline_ns : stream->deadline_ns;

    bh_status status = bhi_payload_enter(payload, call, detail);
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
        status = BHI_FAIL(detail, call, BH_REASON_TOO_LARGE, "the encoded submission",
                          .value = payload->record->size, .limit = BHI_LANE_MAX_RECORD,
                          .advice = "split it");
    }
    submission->abortable = payload->kernel_count > 0;
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        submission->abortable &= !payload->kernels[i]->body->trusted;
    }
    submission->trusted = payload->kernel_count > 0 && !submission->abortable;
    submission->apart = info->alone ? BHI_APART_ALL : BHI_APART_NOT;
    if (status == BH_OK) {
        move(replicas);
    }
    return bhi_payload_finish(payload, status, info->waits, info->wait_count, 1, call, out_event,
                              detail);
}

static bh_status make_wanted(struct bh_stream *stream, struct bhi_replicas *replicas,
                             const char *call, bh_detail *detail) {
    struct bhi_made_replica made = {.of = replicas->wanted, .mover = replicas->mover};
    uint32_t outdated = 0;
    replicas->wanted = NULL;
    bh_status status = BH_OK;
    for (uint32_t i = 0; made.mover && i < replicas->count; i++) {
        outdated += replicas->made[i].mover == made.mover;
    }
    if (outdated == MOST_TRIES) {
        status = BHI_FAIL(detail, call, BH_REASON_BUSY, stream->core.name,
                          .text = "a buffer could not move to the device of the stream: other "
                                  "streams write it all the time",
                          .place = stream->core.name);
    } else if (!BHI_ARRAY_RESERVE(replicas->made, replicas->capacity, replicas->count + 1)) {
        status = BHI_FAIL(detail, call, BH_REASON_MEMORY);
    } else {
        status = bhi_replicate(stream, &made, call, detail);
    }
    if (status == BH_OK) {
        replicas->made[replicas->count++] = made;
        return BH_OK;
    }
    bhi_buffer_unref(made.of);
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
            bhi_buffer_unref_locked(replicas.made[i].of);
        }
        bhi_context_pump_unlock(stream->context);
    }
    free(replicas.made);
    return status;
}

static bh_status check_stream(const char *call, bh_stream *stream, bh_detail *detail) {
    BHI_NEED_LIVE(stream, call, detail);
    return bhi_context_check_fork(stream->context, call, detail);
}

static bh_binding bind_whole(uint32_t binding, bh_buffer *buffer, bh_access access) {
    return (bh_binding){
        .binding = binding, .buffer = buffer, .size = BH_WHOLE_SIZE, .access = access};
}

BH_API bh_binding bh_bind_read(uint32_t binding, bh_buffer *buffer) {
    return bind_whole(binding, buffer, BH_ACCESS_READ);
}

BH_API bh_binding bh_bind_write(uint32_t binding, bh_buffer *buffer) {
    return bind_whole(binding, buffer, BH_ACCESS_WRITE);
}

BH_API bh_binding bh_bind_read_write(uint32_t binding, bh_buffer *buffer) {
    return bind_whole(binding, buffer, BH_ACCESS_READ_WRITE);
}

BH_API bh_status bh_submit(bh_stream *stream, const bh_submit_info *info, bh_event **out_event,
                           bh_detail *detail) {
    /* Written last: out_event may point into info->waits. */
    bh_event *event = NULL;
    bh_submit_info ours;
    bh_status status = check_stream("bh_submit", stream, detail);
    if (status == BH_OK && info && info->struct_size != sizeof *info) {
        status =
            bhi_layout_take(BHI_OURS(bh_submit_info), &ours, info, "bh_submit", "info", detail);
        info = &ours;
    }
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

BH_API bh_status bh_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                           const bh_binding *bindings, uint32_t binding_count, const void *push,
                           uint32_t push_size, bh_event **out_event, bh_detail *detail) {
    if (out_event) {
        *out_event = NULL;
    }
    BHI_TRY(check_stream("bh_launch", stream, detail));
    BHI_NEED(groups, "bh_launch", detail);
    const bh_command command = {.type = BH_COMMAND_DISPATCH,
                                .dispatch = {.kernel = kernel,
                                             .groups = {groups[0], groups[1], groups[2]},
                                             .bindings = bindings,
                                             .binding_count = binding_count,
                                             .push = push,
                                             .push_size = push_size}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    return submit("bh_launch", false, stream, &info, NULL, out_event, detail);
}

bh_status bhi_submit_prepare(const char *call, bh_kernel *kernel, bh_stream *stream,
                             bh_event **out_event, bh_detail *detail) {
    BHI_NEED_LIVE(kernel, call, detail);
    BHI_TRY(check_stream(call, stream, detail));
    if (kernel->context != stream->context) {
        return BHI_FAIL(detail, call, BH_REASON_OTHER_CONTEXT, "kernel");
    }
    const bh_submit_info info = {.struct_size = sizeof info};
    return submit(call, false, stream, &info, kernel, out_event, detail);
}

BH_API bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream, bh_event **out_event,
                                   bh_detail *detail) {
    if (out_event) {
        *out_event = NULL;
    }
    return bhi_submit_prepare("bh_kernel_prepare", kernel, stream, out_event, detail);
}
