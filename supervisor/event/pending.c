#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/context/context.h"
#include "supervisor/event/event.h"
#include "supervisor/stream/stream.h"

void bhi_pending_add(struct bh_event *event) {
    bhi_list_append(&event->context->pending, &event->pending_link);
}

void bhi_pending_forget(bh_context *context) {
    bhi_context_lock(context);
    struct bh_event *failure = context->inherited_failure;
    context->inherited_failure = NULL;
    bhi_context_unlock(context);
    bhi_event_unref(failure);
}

/* Returns the oldest pending event of |stream|, or (NULL) of all, referenced; NULL if all events up to
 * |last| have ended. */
static struct bh_event *oldest(bh_context *context, const bh_stream *stream, uint64_t last) {
    struct bh_event *event = NULL;
    if (stream) {
        const struct bhi_submission *submission = bhi_stream_oldest(&stream->core);
        event = submission ? submission->event : NULL;
    } else if (!bhi_list_empty(&context->pending)) {
        event = BHI_CONTAINER(context->pending.next, struct bh_event, pending_link);
    }
    if (!event || event->id > last) {
        return NULL;
    }
    bhi_event_ref(event);
    return event;
}

/* The failure may be that of a newer event, which is doomed and has not ended yet. */
static const struct bh_event *failure_of(const bh_stream *stream) {
    const struct bh_event *failure = stream->core.failure;
    return failure && bhi_event_state(failure) == BH_EVENT_POISONED ? failure : NULL;
}

static const struct bh_event *earliest_failure(const bh_context *context, uint64_t last) {
    const struct bh_event *earliest = context->inherited_failure;
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        const struct bh_event *failure = failure_of(stream);
        if (failure && (!earliest || failure->id < earliest->id)) {
            earliest = failure;
        }
    }
    return earliest && earliest->id <= last ? earliest : NULL;
}

/* Waits for what was submitted to |stream|, or (NULL) to all, and reports the earliest failure. */
static bh_status synchronize(bh_context *context, const bh_stream *stream, uint64_t timeout_ns,
                             const char *call, bh_detail *detail) {
    const uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    bhi_context_lock(context);
    const uint64_t last = context->next_id; /* event ids are given in the order of submission */
    for (struct bh_event *event; (event = oldest(context, stream, last));) {
        bhi_context_unlock(context);
        const bh_status status = bhi_event_await(event, deadline_ns);
        const uint64_t id = event->id;
        bhi_event_unref(event);
        if (status != BH_OK) {
            return BHI_FAIL(detail, call, BH_REASON_PENDING, .status = status, .text = "event",
                            .value = id);
        }
        bhi_context_lock(context);
    }
    const struct bh_event *failure = stream ? failure_of(stream) : earliest_failure(context, last);
    const bh_status status = failure ? bhi_event_report(failure, detail, call, "event") : BH_OK;
    bhi_context_unlock(context);
    return status;
}

BH_API bh_status bh_context_synchronize(bh_context *context, uint64_t timeout_ns,
                                        bh_detail *detail) {
    static const char call[] = "bh_context_synchronize";
    BHI_TRY(bhi_context_check(context, call, detail));
    /* Another thread may destroy the context meanwhile. */
    bhi_context_retain(context);
    const bh_status status = synchronize(context, NULL, timeout_ns, call, detail);
    bhi_context_unref(context);
    return status;
}

BH_API bh_status bh_stream_synchronize(bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    static const char call[] = "bh_stream_synchronize";
    BHI_NEED_LIVE(stream, call, detail);
    BHI_TRY(bhi_context_check_fork(stream->context, call, detail));
    return synchronize(stream->context, stream, timeout_ns, call, detail);
}
