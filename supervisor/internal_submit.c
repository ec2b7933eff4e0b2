#include "supervisor/internal_submit.h"
#include "base/detail.h"
#include "base/futex.h"
#include "ipc/lane.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/request.h"
#include "supervisor/event/event.h"
#include "supervisor/event/pending.h"
#include "supervisor/load/file.h"
#include "supervisor/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct bhi_request *make_request(struct bh_stream *stream,
                                        const struct bhi_internal_submission *internal) {
    struct bhi_request *request = calloc(1, sizeof *request);
    struct bh_event *event = bhi_event_create(stream->context);
    struct bhi_lane_record *record = calloc(1, sizeof *record + internal->size);
    if (!request || !event || !record) {
        free(record);
        bhi_event_unref(event);
        free(request);
        return NULL;
    }
    record->size = sizeof *record + internal->size;
    record->command_count = 1;
    memcpy(record + 1, internal->command, internal->size);
    request->record = record;
    request->record_capacity = record->size;
    bhi_submission_init(&request->submission, &stream->core, event);
    request->submission.deadline_ns = internal->deadline_ns;
    request->submission.failure_reported = internal->quiet;
    request->file = internal->file;
    if (request->file)
        bhi_file_ref(request->file);
    return request;
}

/* Lock held. */
static bool use(struct bhi_submission *submission, struct bh_buffer *buffer, bool writes) {
    bool first = false;
    if (!buffer)
        return true;
    if (!bhi_submission_use(submission, &buffer->content, !writes, writes, writes, &first))
        return false;
    if (first)
        bhi_buffer_ref(buffer);
    return true;
}

bh_status bhi_internal_submit(struct bh_stream *stream,
                              const struct bhi_internal_submission *internal,
                              struct bh_event **out_event, bh_detail *detail) {
    bh_context *context = stream->context;
    struct bhi_request *request = make_request(stream, internal);
    if (!request)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", internal->call);
    struct bhi_submission *submission = &request->submission;
    struct bh_event *event = submission->event;
    bh_status status = BH_OK;
    bhi_context_lock(context);
    if (context->closed)
        status = bhi_fail(detail, BH_CLOSED, 0, "%s: the context was destroyed", internal->call);
    event->id = bhi_context_new_id(context);
    event->verdict.submitted_ns = bhi_now_ns();
    submission->code = bhi_request_code(request);
    if (status == BH_OK &&
        (!use(submission, internal->reads, false) || !use(submission, internal->fills, true) ||
         !bhi_submission_depend(submission, NULL, 0)))
        status = bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", internal->call);
    if (status == BH_OK) {
        bhi_event_ref(event);
        *out_event = event;
        bhi_pending_add(event);
        bhi_submission_enqueue(submission);
    } else {
        bhi_submission_abandon(submission);
    }
    bhi_context_unlock(context);
    return status;
}
