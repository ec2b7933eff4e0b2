#include "supervisor/submit/transfer.h"
#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/event/event.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/internal.h"

#include <string.h>

#define PIECES 4u /* in progress at most */

struct transfer {
    const char *call;         /* for the detail */
    struct bh_buffer *buffer; /* what is written follows it where it moves */
    uint64_t offset;
    uint64_t size;  /* not 0 */
    uint8_t *bytes; /* of the host */
    bool writes;    /* into the buffer; all of it, if |size| is all, and CLEAN then */
};

/* A piece of a transfer: its staging buffer, and its copy while it has not ended. */
struct piece {
    struct bh_buffer *staging; /* made at its first use */
    struct bh_event *copied;   /* referenced; NULL: none */
    uint64_t begin, bytes;
};

static bh_status start(const struct transfer *t, struct bh_buffer *place, struct piece *piece,
                       uint64_t begin, bh_detail *detail) {
    struct bh_stream *home = place->device->stream;
    const uint64_t rest = t->size - begin;
    piece->begin = begin;
    piece->bytes = rest < BHI_HOST_PIECE_BYTES ? rest : BHI_HOST_PIECE_BYTES;
    if (!piece->staging) {
        BHI_TRY(bhi_buffer_make_staging(home, piece->bytes, t->writes, t->call, &piece->staging,
                                        detail));
    }
    struct bhi_internal_copy copy = {.call = t->call, .bytes = piece->bytes};
    if (t->writes) {
        memcpy(piece->staging->pointer, t->bytes + begin, piece->bytes);
        copy.src = piece->staging;
        copy.dst = place;
        copy.named = t->buffer;
        copy.dst_offset = t->offset + begin;
        /* The first piece counts as replacing all of the content. */
        copy.replaces_content = begin == 0 && t->size == t->buffer->size;
    } else {
        copy.src = place;
        copy.src_offset = t->offset + begin;
        copy.dst = piece->staging;
    }
    return bhi_internal_submit_copy(home, &copy, &piece->copied, detail);
}

static bh_status finish(const struct transfer *t, struct piece *piece, uint64_t deadline_ns,
                        bh_detail *detail) {
    struct bh_event *copied = piece->copied;
    bh_status status = bhi_event_await(copied, deadline_ns);
    if (status != BH_OK) {
        return BHI_FAIL(detail, t->call, BH_REASON_PENDING, .status = status,
                        .text = "the copy of event", .value = copied->id);
    }
    if (bhi_event_state(copied) == BH_EVENT_POISONED) {
        return bhi_event_report(copied, detail, t->call,
                                t->writes
                                    ? "the copy failed and poisoned the content: event"
                                    : "the copy failed, and the content is still good: event");
    }
    bhi_event_unref(copied);
    piece->copied = NULL;
    if (!t->writes) {
        memcpy(t->bytes + piece->begin, piece->staging->pointer, piece->bytes);
    }
    return BH_OK;
}

/* Cancels the copy if it has not begun, and drops the staging buffer. One that has begun is short,
 * and its end changes nothing (E10). */
static void let_go(bh_context *context, struct piece *piece) {
    if (piece->copied) {
        bhi_context_lock(context);
        if (piece->copied->submission) {
            bhi_submission_let_go(piece->copied->submission);
        }
        bhi_context_pump_unlock(context);
        bhi_event_unref(piece->copied);
    }
    bh_buffer_release(piece->staging); /* a copy that still runs keeps it */
}

/* Starts a piece where the buffer is now. If it has moved, a write goes on at its new place: what
 * was written before has moved with it. A read names no buffer that could move, and goes on at the
 * old place, which keeps the old content. */
static bh_status start_there(const struct transfer *t, struct bh_buffer **place,
                             struct piece *piece, uint64_t begin, bh_detail *detail) {
    for (;;) {
        const bh_status status = start(t, *place, piece, begin, detail);
        struct bh_buffer *now = bhi_buffer_take_place(t->buffer);
        const bool again = status == BH_UNAVAILABLE && now != *place;
        bhi_buffer_unref(again ? *place : now);
        if (!again) {
            return status;
        }
        *place = now;
    }
}

/* Submits the copies, and waits for them until |deadline_ns|; then cancels those in progress and
 * returns BH_TIMEOUT. Otherwise returns BH_OK, or the status of the first copy that fails. */
static bh_status run(const struct transfer *t, uint64_t deadline_ns, bh_detail *detail) {
    struct bh_buffer *place = bhi_buffer_take_place(t->buffer);
    struct piece pieces[PIECES] = {{0}};
    bh_status status = BH_OK;
    uint64_t begun = 0, ended = 0;
    for (uint32_t i = 0; status == BH_OK && ended < t->size; i++) {
        struct piece *piece = &pieces[i % PIECES];
        if (piece->copied) {
            ended += piece->bytes;
            status = finish(t, piece, deadline_ns, detail);
        }
        if (status == BH_OK && begun < t->size) {
            status = start_there(t, &place, piece, begun, detail);
            begun += status == BH_OK ? piece->bytes : 0;
        }
    }
    for (uint32_t i = 0; i < PIECES; i++) {
        let_go(t->buffer->context, &pieces[i]);
    }
    bhi_buffer_unref(place);
    return status;
}

/* -- the calls -------------------------------------------------------------------------------- */

/* Waits until all that was queued on the stream before has ended. So a timeout until then changes
 * nothing (E10). */
static bh_status await_turn(struct bh_stream *home, uint64_t deadline_ns, const char *call,
                            bh_detail *detail) {
    bhi_context_lock(home->context);
    const bool idle = !bhi_stream_oldest(&home->core) && bhi_stream_worker(home);
    bhi_context_unlock(home->context);
    if (idle) {
        return BH_OK;
    }
    struct bh_event *turn = NULL;
    bh_status status = bhi_internal_submit_marker(home, call, &turn, detail);
    if (status == BH_OK) {
        status = bhi_event_await(turn, deadline_ns);
        if (status != BH_OK) {
            BHI_FAIL(
                detail, call, BH_REASON_BUSY, home->core.name, .status = status,
                .text =
                    "the copy waited for its turn on the stream, which was busy until the timeout",
                .place = home->core.name);
        } else if (bhi_event_state(turn) == BH_EVENT_POISONED) {
            status = bhi_event_report(turn, detail, call, "the stream cannot run the copy: event");
        }
        bhi_event_unref(turn);
    }
    return status;
}

static bh_status check_range(const struct bh_buffer *buffer, uint64_t offset, const void *bytes,
                             uint64_t size, const char *what, bh_detail *detail) {
    BHI_NEED_LIVE(buffer, what, detail);
    if (size) {
        BHI_NEED(bytes, what, detail);
    }
    if (offset > buffer->size || size > buffer->size - offset) {
        return BHI_FAIL(detail, what, BH_REASON_PAST_END, "size", .value = offset,
                        .limit = buffer->size, .text = "buffer");
    }
    return BH_OK;
}

BH_API bh_status bh_buffer_read(bh_buffer *buffer, uint64_t offset, void *out_bytes, uint64_t size,
                                uint64_t timeout_ns, bh_detail *detail) {
    static const char call[] = "bh_buffer_read";
    const uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    BHI_TRY(check_range(buffer, offset, out_bytes, size, call, detail));
    BHI_TRY(bhi_buffer_acquire(buffer, BHI_HOST_READ, deadline_ns, call, detail));
    if (size && buffer->device) {
        const struct transfer transfer = {
            .call = call, .buffer = buffer, .offset = offset, .size = size, .bytes = out_bytes};
        return run(&transfer, deadline_ns, detail);
    }
    if (size) {
        memcpy(out_bytes, (const char *)buffer->pointer + offset, size);
    }
    return BH_OK;
}

static bh_status write_device(struct bh_buffer *buffer, uint64_t offset, const void *bytes,
                              uint64_t size, uint64_t deadline_ns, const char *call,
                              bh_detail *detail) {
    const bool whole = size == buffer->size;
    BHI_TRY(bhi_buffer_acquire(buffer, whole ? BHI_HOST_REPLACE : BHI_HOST_WRITE, deadline_ns, call,
                               detail));
    if (!size) {
        return BH_OK;
    }
    struct bh_buffer *place = bhi_buffer_take_place(buffer);
    const bh_status status = await_turn(place->device->stream, deadline_ns, call, detail);
    bhi_buffer_unref(place);
    if (status != BH_OK) {
        return status;
    }
    const struct transfer transfer = {
        .call = call,
        .buffer = buffer,
        .offset = offset,
        .size = size,
        .bytes = (uint8_t *)(uintptr_t)bytes, /* it is only read */
        .writes = true,
    };
    return run(&transfer, BH_FOREVER, detail);
}

BH_API bh_status bh_buffer_write(bh_buffer *buffer, uint64_t offset, const void *bytes,
                                 uint64_t size, uint64_t timeout_ns, bh_detail *detail) {
    static const char call[] = "bh_buffer_write";
    const uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    BHI_TRY(check_range(buffer, offset, bytes, size, call, detail));
    if (buffer->device) {
        return write_device(buffer, offset, bytes, size, deadline_ns, call, detail);
    }
    BHI_TRY(bhi_buffer_acquire(buffer, size == buffer->size ? BHI_HOST_DISCARD : BHI_HOST_WRITE,
                               deadline_ns, call, detail));
    if (size) {
        memcpy((char *)buffer->pointer + offset, bytes, size);
    }
    return BH_OK;
}
