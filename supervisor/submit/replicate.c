#include "supervisor/submit/replicate.h"
#include "base/detail.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/replica.h"
#include "supervisor/context/context.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/encode.h"
#include "supervisor/submit/internal.h"
#include "supervisor/submit/transfer.h"

/* Queues the copy through host memory, in pieces, with two staging buffers: one is written while
 * the other is read. The order of the copies follows from what they use. After a piece that failed,
 * nothing more is read: each would cost as many workers (bhi_submission_again). A worker of one tenant
 * writes a staging buffer that a worker of another tenant reads, so it does not come from the pool,
 * whose memory keeps old bytes. */
static bh_status copy_through_host(struct bh_stream *stream, struct bh_buffer *of,
                                   struct bh_buffer *copy, uint64_t most, const char *call,
                                   bh_detail *detail) {
    struct bh_buffer *staging[2] = {NULL, NULL};
    struct bh_event *read = NULL;
    bh_status status = BH_OK;
    uint32_t turn = 0;
    for (uint64_t begin = 0; status == BH_OK && begin < of->size; turn++) {
        struct bh_buffer **piece = &staging[turn % 2];
        const uint64_t rest = of->size - begin, bytes = rest < most ? rest : most;
        if (!*piece) {
            status = bhi_buffer_make(of->context, bytes, call, piece, detail);
        }
        const struct bhi_internal_copy down = {.call = call,
                                               .src = of,
                                               .dst = *piece,
                                               .src_offset = begin,
                                               .bytes = bytes,
                                               .replaces_content = true,
                                               .after = read};
        struct bh_event *piece_read = NULL;
        if (status == BH_OK) {
            status = bhi_internal_submit_copy(of->device->stream, &down, &piece_read, detail);
        }
        bhi_event_unref(read);
        read = piece_read;
        /* The first piece counts as replacing all of the content. A later piece that fails poisons
         * the content. */
        const struct bhi_internal_copy up = {.call = call,
                                             .src = *piece,
                                             .dst = copy,
                                             .content = of,
                                             .dst_offset = begin,
                                             .bytes = bytes,
                                             .replaces_content = begin == 0};
        if (status == BH_OK) {
            status = bhi_internal_submit_copy(stream, &up, NULL, detail);
        }
        begin += bytes;
    }
    bhi_event_unref(read);
    bh_buffer_release(staging[0]);
    bh_buffer_release(staging[1]);
    return status;
}

static uint64_t version_of(const struct bh_buffer *buffer) {
    bhi_context_lock(buffer->context);
    const uint64_t version = buffer->device->version;
    bhi_context_unlock(buffer->context);
    return version;
}

static bh_status fill(struct bh_stream *stream, struct bh_buffer *of, struct bh_buffer *copy,
                      uint64_t *out_version, const char *call, bh_detail *detail) {
    *out_version = version_of(of);
    if (!copy->device) {
        const struct bhi_internal_copy whole = {
            .call = call, .src = of, .dst = copy, .bytes = of->size};
        return of->size ? bhi_internal_submit_copy(of->device->stream, &whole, NULL, detail)
                        : BH_OK;
    }
    BHI_TRY(copy_through_host(stream, of, copy, BHI_PIECE_BYTES, call, detail));
    if (version_of(of) != *out_version && of->size > BHI_PIECE_BYTES) {
        /* A write was queued between two pieces, so the copy has parts of two versions. In a single
         * copy nothing can come between. */
        *out_version = version_of(of);
        return copy_through_host(stream, of, copy, of->size, call, detail);
    }
    return BH_OK;
}

/* Takes an existing replica of |made|->of that |stream| reads: the buffer can move there, too. */
static bool find_one(struct bh_stream *stream, struct bhi_made_replica *made) {
    bhi_context_lock(stream->context);
    struct bh_buffer *found = bhi_replica_find(stream, made->of);
    const bool is_one = found && found != made->of && found->device;
    if (is_one) {
        bhi_buffer_ref(found);
        made->copy = found;
        made->version = made->of->device->version;
    }
    bhi_context_unlock(stream->context);
    return is_one;
}

bh_status bhi_replicate(struct bh_stream *stream, struct bhi_made_replica *made, const char *call,
                        bh_detail *detail) {
    bh_context *context = stream->context;
    if (made->mover && find_one(stream, made)) {
        return BH_OK;
    }
    bhi_context_lock(context);
    const bool on_device = bhi_stream_shares_memory(stream);
    bhi_context_unlock(context);
    struct bh_buffer *of = made->of, *copy = NULL;
    bh_status status = on_device ? bhi_buffer_make_device(stream, of->size, call, &copy, detail)
                                 : bhi_buffer_make(context, of->size, call, &copy, detail);
    if (status == BH_OK) {
        status = fill(stream, of, copy, &made->version, call, detail);
    }
    if (status != BH_OK) {
        bh_buffer_release(copy);
        return status;
    }
    bhi_context_lock(context);
    bhi_handle_drop(&copy->handle); /* it is not the caller's; the reference stays, as made->copy */
    bhi_replica_keep(stream, of, made->version, copy);
    bhi_context_pump_unlock(context);
    made->copy = copy;
    return BH_OK;
}
