/* Loads into device memory, piece by piece; and what a buffer from a file tells of its load: its event,
 * how far it is, the array in the file. */
#include "supervisor/load/load.h"
#include "base/detail.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/event/event.h"
#include "supervisor/file/file.h"
#include "supervisor/load/file_header.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/internal.h"
#include "supervisor/submit/transfer.h"
#include "supervisor/worker/worker_proc.h"

#include <bulkhead/file.h>
#include <stdlib.h>

#define MOST_PIECES 1024u

/* A buffer that is being filled piece by piece. */
struct work {
    struct bhi_file *file;
    struct bh_buffer *buffer;
    const struct bhi_cmd_load *whole;
    uint64_t deadline_ns;
    const char *call;
    struct bh_buffer *staging[2];
    struct bh_event *read; /* the event of the last piece, referenced; NULL: none */
};

/* Submits the read and the copy of piece |i|. The read depends on the read of the piece before it,
 * so nothing more is read after a failure. The copy depends on the copies before it, so the end of
 * the last copy is the end of the load. */
static bh_status submit(struct work *work, struct bhi_load *load, uint32_t i, bh_detail *detail) {
    const uint64_t begin = i * load->piece_bytes, rest = work->whole->bytes - begin;
    struct bh_buffer *staging = work->staging[i % 2];
    struct bhi_cmd_load command = *work->whole;
    command.buffer = staging->id;
    command.offset += begin;
    const bool last = rest <= load->piece_bytes;
    command.bytes = last ? rest : load->piece_bytes;
    struct bh_event *read = NULL;
    BHI_TRY(bhi_file_submit(work->file, staging, &command, sizeof command, work->read,
                            work->deadline_ns, BHI_FILE_PIECE, work->call, &read, detail));
    bhi_event_unref(work->read);
    work->read = read;
    const struct bhi_internal_copy copy = {
        .call = work->call,
        .src = staging,
        .dst = work->buffer,
        .dst_offset = begin,
        .bytes = command.bytes,
        .replaces_content = i == 0,
        .reads_target = i > 0,
        .visible = last, /* it is the load's event */
    };
    bh_status status =
        bhi_internal_submit_copy(work->buffer->device->stream, &copy, &load->pieces[i], detail);
    load->piece_count += status == BH_OK;
    return status;
}

bh_status bhi_load_pieces(struct bhi_file *file, struct bh_buffer *buffer,
                          const struct bhi_cmd_load *command, uint64_t deadline_ns,
                          const char *call, struct bhi_load *load, bh_detail *detail) {
    struct work work = {
        .file = file, .buffer = buffer, .whole = command, .deadline_ns = deadline_ns, .call = call};
    /* Nothing in a piece of Fortran order is a piece of C order. */
    const uint64_t share =
        command->fortran ? command->bytes : (command->bytes - 1) / MOST_PIECES + 1;
    load->piece_bytes = share < BHI_PIECE_BYTES ? BHI_PIECE_BYTES : share;
    const uint32_t count = (uint32_t)((command->bytes - 1) / load->piece_bytes + 1);
    bh_status status = BH_OK;
    load->pieces = calloc(count, sizeof *load->pieces);
    if (!load->pieces) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    for (uint32_t i = 0; i < 2 && i < count && status == BH_OK; i++) {
        const uint64_t bytes =
            command->bytes < load->piece_bytes ? command->bytes : load->piece_bytes;
        status = bhi_buffer_make(file->context, bytes, call, &work.staging[i], detail);
    }
    for (uint32_t i = 0; i < count && status == BH_OK; i++) {
        status = submit(&work, load, i, detail);
    }
    bhi_event_unref(work.read);
    bh_buffer_release(work.staging[0]);
    bh_buffer_release(work.staging[1]);
    if (status == BH_OK) {
        load->event = load->pieces[count - 1];
        bhi_event_ref(load->event);
        return BH_OK;
    }
    for (uint32_t i = 0; i < load->piece_count; i++) {
        bhi_event_unref(load->pieces[i]);
    }
    free(load->pieces);
    return status;
}

/* Returns how many bytes are loaded; 0 once the load has failed. Lock held. */
static uint64_t pieces_done(const struct bhi_load *load) {
    if (bhi_event_state(load->event) == BH_EVENT_POISONED) {
        return 0;
    }
    uint64_t done = 0;
    for (uint32_t i = 0; i < load->piece_count; i++) {
        if (bhi_event_state(load->pieces[i]) != BH_EVENT_READY) {
            break;
        }
        done += load->piece_bytes;
    }
    return done;
}

/* -- what a load tells ------------------------------------------------------------------------- */

BH_API bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event, bh_detail *detail) {
    BHI_NEED(out_event, "bh_buffer_load_event", detail);
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
    BHI_NEED_LIVE(buffer, call, detail);
    return buffer->load ? BH_OK : BHI_FAIL(detail, call, BH_REASON_NOT_FROM_FILE);
}

BH_API bh_status bh_buffer_load_progress(bh_buffer *buffer, uint64_t *out_done, uint64_t *out_total,
                                         bh_detail *detail) {
    static const char call[] = "bh_buffer_load_progress";
    BHI_TRY(check_loaded(buffer, call, detail));
    BHI_NEED(out_done, call, detail);
    BHI_NEED(out_total, call, detail);
    bh_context *context = buffer->context;
    BHI_TRY(bhi_context_check_fork(context, call, detail));
    const struct bh_event *event = buffer->load->event;
    uint64_t done = 0;
    bhi_context_lock(context);
    const struct bhi_submission *submission = event->submission;
    if (bhi_event_state(event) == BH_EVENT_READY) {
        done = buffer->size;
    } else if (buffer->load->piece_count) {
        done = pieces_done(buffer->load);
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
    BHI_TRY(bhi_layout_check(BHI_OURS(bh_array_info), out_info, call, "out_info", detail));
    bhi_layout_give(out_info, &buffer->load->array, sizeof buffer->load->array);
    return BH_OK;
}
