#include "supervisor/submit/internal.h"
#include "base/detail.h"
#include "base/futex.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/payload.h"
#include "supervisor/file/file.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/encode.h"
#include "supervisor/submit/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COPY_DEADLINE_NS (60ull * 1000000000)

/* A submission that runs again on the next worker if its worker dies. It runs alone: so its death
 * hurts no submission of a caller, and theirs do not hurt it. */
static void repeat(struct bhi_payload *payload, bool hidden) {
    payload->submission.repeat = BHI_REPEAT_ALWAYS;
    payload->submission.failure_reported = hidden;
    payload->submission.event->library = hidden;
    payload->record->flags |= BHI_RECORD_ALONE;
}

bh_status bhi_internal_submit(struct bh_stream *stream,
                              const struct bhi_internal_submission *internal,
                              struct bh_event **out_event, bh_detail *detail) {
    struct bhi_payload *payload =
        bhi_payload_start(stream, 1, sizeof *payload->record + internal->size);
    if (!payload) {
        return BHI_FAIL(detail, internal->call, BH_REASON_MEMORY);
    }
    memcpy(bhi_encode_append(payload, internal->size), internal->command, internal->size);
    payload->submission.deadline_ns = internal->deadline_ns;
    if (internal->wait_counts && internal->deadline_ns != BH_FOREVER) {
        payload->submission.due_ns = bhi_deadline_ns(internal->deadline_ns);
    }
    payload->submission.failure_reported = internal->failure_uncounted;
    payload->submission.repeat = BHI_REPEAT_VICTIM; /* it reads nothing that it writes */
    payload->submission.event->library = internal->hidden;
    payload->file = internal->file;
    if (payload->file) {
        bhi_file_ref(payload->file);
    }
    if (internal->source && (payload->source = malloc(sizeof *payload->source))) {
        *payload->source = *internal->source;
    }
    bh_status status = bhi_payload_enter(payload, internal->call, detail);
    payload->load_bytes = internal->load_bytes;
    stream->context->counts.load_bytes += internal->load_bytes;
    stream->context->wake_reactor |= payload->submission.due_ns != 0; /* it watches the time */
    if (status == BH_OK &&
        ((internal->source && !payload->source) ||
         (internal->reads && !bhi_encode_use(payload, internal->reads, true, false, false)) ||
         (internal->fills && !bhi_encode_use(payload, internal->fills, false, true, true)))) {
        status = BHI_FAIL(detail, internal->call, BH_REASON_MEMORY);
    }
    return bhi_payload_finish(payload, status, &internal->after, internal->after ? 1 : 0, 0,
                              internal->call, out_event, detail);
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
    struct bhi_payload *payload =
        bhi_payload_start(stream, 1, sizeof *payload->record + sizeof command);
    if (!payload) {
        return BHI_FAIL(detail, copy->call, BH_REASON_MEMORY);
    }
    memcpy(bhi_encode_append(payload, sizeof command), &command, sizeof command);
    payload->submission.deadline_ns =
        stream->deadline_ns == BH_FOREVER ? COPY_DEADLINE_NS : stream->deadline_ns;
    repeat(payload, !copy->visible);
    const struct bh_buffer *content = copy->content ? copy->content : copy->src;
    const bool whole = copy->replaces_content || copy->bytes == copy->dst->size;
    bh_status status = bhi_payload_enter(payload, copy->call, detail);
    if (status == BH_OK && copy->named && bhi_buffer_place(copy->named) != copy->dst) {
        status = BHI_FAIL(detail, copy->call, BH_REASON_UNREACHABLE, "the buffer",
                          .subject = BH_SUBJECT_BUFFER, .text = "has moved");
    }
    if (status == BH_OK && (!bhi_encode_use(payload, copy->src, true, false, false) ||
                            !bhi_encode_use(payload, copy->dst, copy->reads_target, true,
                                            whole && !copy->reads_target))) {
        status = BHI_FAIL(detail, copy->call, BH_REASON_MEMORY);
    }
    if (content->device) {
        payload->submission.event->content_of = content->device->written_by;
    }
    return bhi_payload_finish(payload, status, &copy->after, copy->after ? 1 : 0, 0, copy->call,
                              out_event, detail);
}

bh_status bhi_internal_submit_marker(struct bh_stream *stream, const char *call,
                                     struct bh_event **out_event, bh_detail *detail) {
    struct bhi_payload *payload = bhi_payload_start(stream, 0, sizeof *payload->record);
    if (!payload) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    /* From its turn on, so it may wait for any time. What is behind it waits for it, and nobody can
     * cancel it (E9). */
    payload->submission.deadline_ns = COPY_DEADLINE_NS;
    repeat(payload, true);
    return bhi_payload_finish(payload, bhi_payload_enter(payload, call, detail), NULL, 0, 0, call,
                              out_event, detail);
}
