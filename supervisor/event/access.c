#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/event/event.h"

bh_status bhi_buffer_acquire(struct bh_buffer *buffer, enum bhi_host_access access,
                             uint64_t deadline_ns, const char *what, bh_detail *detail) {
    bh_context *context = buffer->context;
    const bool host_writes = access != BHI_HOST_READ;
    BHI_TRY(bhi_context_check_fork(context, what, detail));
    for (;;) {
        bhi_context_lock(context);
        struct bh_buffer *place = bhi_buffer_place(buffer);
        struct bh_event *pending = bhi_content_obstacle(&place->content, host_writes);
        if (!pending) {
            bh_status status = BH_OK;
            place->changeable |= host_writes; /* never reset, because there is no unmap */
            if (access == BHI_HOST_DISCARD) {
                bhi_content_clean(&place->content);
            }
            const struct bh_event *poison = bhi_content_poison(&place->content);
            if (poison && access != BHI_HOST_REPLACE) {
                status = bhi_event_report(poison, detail, what, "the content is poisoned by event");
            }
            bhi_context_pump_unlock(context);
            return status;
        }
        bhi_event_ref(pending);
        bhi_context_unlock(context);
        bh_status status = bhi_event_await(pending, deadline_ns);
        const uint64_t id = pending->id;
        bool loads = buffer->load && pending == buffer->load->event;
        bhi_event_unref(pending);
        if (status != BH_OK) {
            return BHI_FAIL(detail, what, BH_REASON_PENDING, .status = status, .value = id,
                            .text = loads ? "the buffer is still being loaded: event"
                                          : "the buffer is still in use: event");
        }
    }
}

BH_API bh_status bh_buffer_map(bh_buffer *buffer, bh_map_intent intent, uint64_t timeout_ns,
                               void **out_pointer, bh_detail *detail) {
    BHI_NEED_LIVE(buffer, "bh_buffer_map", detail);
    BHI_NEED(out_pointer, "bh_buffer_map", detail);
    *out_pointer = NULL;
    if (intent != BH_MAP_READ && intent != BH_MAP_READ_WRITE && intent != BH_MAP_DISCARD) {
        return BHI_FAIL(detail, "bh_buffer_map", BH_REASON_UNKNOWN_VALUE, "intent",
                        .value = (uint64_t)intent, .text = "bh_map_intent");
    }
    if (buffer->device) {
        return BHI_FAIL(detail, "bh_buffer_map", BH_REASON_REMOTE);
    }
    const enum bhi_host_access access = intent == BH_MAP_READ      ? BHI_HOST_READ
                                        : intent == BH_MAP_DISCARD ? BHI_HOST_DISCARD
                                                                   : BHI_HOST_WRITE;
    BHI_TRY(
        bhi_buffer_acquire(buffer, access, bhi_deadline_ns(timeout_ns), "bh_buffer_map", detail));
    *out_pointer = buffer->pointer;
    return BH_OK;
}
