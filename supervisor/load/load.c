/* What a buffer from a file tells of its load: its event, how far it is, the array in the file. */
#include "base/detail.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/event/event.h"
#include "supervisor/load/pieces.h"
#include "supervisor/worker/worker_proc.h"
#include <bulkhead/file.h>

BH_API bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event, bh_detail *detail) {
    if (!out_event) {
        return BHI_FAIL(detail, "bh_buffer_load_event", BH_REASON_NULL, "out_event");
    }
    *out_event = NULL;
    if (!BHI_LIVE(buffer) || !buffer->load) {
        return BHI_FAIL(detail, "bh_buffer_load_event",
                        BHI_LIVE(buffer) ? BH_REASON_NOT_FROM_FILE : BH_REASON_RELEASED, "buffer");
    }
    if (!bhi_handle_retain(&buffer->load->event->handle)) {
        return BHI_FAIL(detail, "bh_buffer_load_event", BH_REASON_ARGUMENT, "the event",
                        .text = "was released too often");
    }
    *out_event = buffer->load->event;
    return BH_OK;
}

static bh_status check_loaded(const bh_buffer *buffer, const char *call, bh_detail *detail) {
    if (!BHI_LIVE(buffer)) {
        return BHI_FAIL(detail, call, BH_REASON_RELEASED, "buffer");
    }
    return buffer->load ? BH_OK : BHI_FAIL(detail, call, BH_REASON_NOT_FROM_FILE);
}

BH_API bh_status bh_buffer_load_progress(bh_buffer *buffer, uint64_t *out_done, uint64_t *out_total,
                                         bh_detail *detail) {
    static const char call[] = "bh_buffer_load_progress";
    BHI_TRY(check_loaded(buffer, call, detail));
    if (!out_done || !out_total) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, out_done ? "out_total" : "out_done");
    }
    bh_context *context = buffer->context;
    if (bhi_context_forked(context)) {
        return bhi_context_refuse(call, detail);
    }
    const struct bh_event *event = buffer->load->event;
    uint64_t done = 0;
    bhi_context_lock(context);
    const struct bhi_submission *submission = event->submission;
    if (bhi_event_state(event) == BH_EVENT_READY) {
        done = buffer->size;
    } else if (buffer->load->piece_count) {
        done = bhi_load_pieces_done(buffer->load);
    } else if (submission && submission->state == BHI_RELEASED) {
        const struct bhi_progress_header *header =
            bhi_worker_of(submission->worker)->progress.header;
        if (atomic_load_explicit(&header->load_seq, memory_order_acquire) == submission->seq) {
            done = atomic_load_explicit(&header->load_bytes, memory_order_relaxed);
        }
        if (done > buffer->size) {
            done = buffer->size;
        }
    }
    bhi_context_unlock(context);
    *out_done = done;
    *out_total = buffer->size;
    return BH_OK;
}

BH_API bh_status bh_buffer_array(const bh_buffer *buffer, bh_array_info *out_info,
                                 bh_detail *detail) {
    static const char call[] = "bh_buffer_array";
    BHI_TRY(check_loaded(buffer, call, detail));
    if (!out_info) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "out_info");
    }
    BHI_TRY(bhi_layout_check(BHI_OURS(bh_array_info), out_info, call, "out_info", detail));
    bhi_layout_give(out_info, &buffer->load->array, sizeof buffer->load->array);
    return BH_OK;
}
