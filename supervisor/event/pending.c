#include "supervisor/event/pending.h"
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

/* Returns the oldest pending event, referenced; NULL if all events up to |last| have ended. */
static struct bh_event *oldest(bh_context *context, uint64_t last) {
    if (bhi_list_empty(&context->pending)) {
        return NULL;
    }
    struct bh_event *event = BHI_CONTAINER(context->pending.next, struct bh_event, pending_link);
    if (event->id > last) {
        return NULL;
    }
    bhi_event_ref(event);
    return event;
}

static const struct bh_event *earliest_failure(const bh_context *context, uint64_t last) {
    const struct bh_event *earliest = context->inherited_failure;
    BHI_LIST_EACH(node, &context->streams) {
        const struct bh_event *failure = BHI_CONTAINER(node, struct bh_stream, link)->core.failure;
        /* The failure may be that of a newer event, which is doomed and has not ended yet. */
        if (failure && bhi_event_state(failure) == BH_EVENT_POISONED &&
            (!earliest || failure->id < earliest->id)) {
            earliest = failure;
        }
    }
    return earliest && earliest->id <= last ? earliest : NULL;
}

static bh_status wait_for_pending(bh_context *context, uint64_t deadline_ns, bh_detail *detail) {
    bhi_context_lock(context);
    uint64_t last = context->next_id; /* event ids are given in the order of submission */
    for (struct bh_event *event; (event = oldest(context, last));) {
        bhi_context_unlock(context);
        bh_status status = bhi_event_await(event, deadline_ns);
        uint64_t id = event->id;
        bhi_event_unref(event);
        if (status != BH_OK) {
            return BHI_FAIL(detail, "bh_context_synchronize", BH_REASON_PENDING, .status = status,
                            .text = "event", .value = id);
        }
        bhi_context_lock(context);
    }
    bh_status status = BH_OK;
    const struct bh_event *failure = earliest_failure(context, last);
    if (failure) {
        status = bhi_event_report(failure, detail, "bh_context_synchronize", "event");
    }
    bhi_context_unlock(context);
    return status;
}

BH_API bh_status bh_context_synchronize(bh_context *context, uint64_t timeout_ns,
                                        bh_detail *detail) {
    if (!context) {
        return BHI_FAIL(detail, "bh_context_synchronize", BH_REASON_NULL, "context");
    }
    if (!bhi_handle_live(&context->handle)) {
        return BHI_FAIL(detail, "bh_context_synchronize", BH_REASON_DESTROYED);
    }
    if (bhi_context_forked(context)) {
        return bhi_context_refuse("bh_context_synchronize", detail);
    }
    /* Another thread may destroy the context meanwhile. */
    bhi_context_retain(context);
    bh_status status = wait_for_pending(context, bhi_deadline_ns(timeout_ns), detail);
    bhi_context_unref(context);
    return status;
}

BH_API bh_status bh_stream_synchronize(bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    if (!BHI_LIVE(stream)) {
        return BHI_FAIL(detail, "bh_stream_synchronize", BH_REASON_RELEASED, "stream");
    }
    bh_context *context = stream->context;
    if (bhi_context_forked(context)) {
        return bhi_context_refuse("bh_stream_synchronize", detail);
    }
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    bhi_context_lock(context);
    uint64_t last = context->next_id; /* event ids are given in the order of submission */
    for (;;) {
        const struct bhi_submission *oldest = bhi_stream_oldest(&stream->core);
        struct bh_event *pending = oldest ? oldest->event : NULL;
        if (!pending || pending->id > last) {
            break;
        }
        bhi_event_ref(pending);
        bhi_context_unlock(context);
        bh_status status = bhi_event_await(pending, deadline_ns);
        const uint64_t id = pending->id;
        bhi_event_unref(pending);
        if (status != BH_OK) {
            return BHI_FAIL(detail, "bh_stream_synchronize", BH_REASON_PENDING, .status = status,
                            .value = id, .text = "event");
        }
        bhi_context_lock(context);
    }
    bh_status status = BH_OK;
    const struct bh_event *failure = stream->core.failure;
    /* The failure may be that of a newer event, which is doomed and has not ended yet. */
    if (failure && bhi_event_state(failure) == BH_EVENT_POISONED) {
        status = bhi_event_report(failure, detail, "bh_stream_synchronize", "event");
    }
    bhi_context_unlock(context);
    return status;
}
