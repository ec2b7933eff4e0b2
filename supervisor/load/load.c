/* bh_buffer_from_file: makes a buffer whose content a loader reads. If the file has a header, a
 * first submission to a loader has it parsed, and the call waits for that (file_header.h). Further
 * submissions read the data: one, or several into device memory (pieces.h). Deadlines, deaths,
 * poison and cancelling are those of any submission. */
#include "base/copy_once.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/text.h"
#include "ipc/commands.h"
#include "ipc/file_answer.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/device_memory.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/event/event.h"
#include "supervisor/file/file.h"
#include "supervisor/load/file_header.h"
#include "supervisor/load/pieces.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL "bh_buffer_from_file"

_Static_assert(BHI_FILE_DIMENSIONS == BH_MAX_RANK, "loader and caller agree");

/* -- what is to be read ------------------------------------------------------------------------ */

static bh_status inspect(struct bhi_file *file, const bh_file_source *source, uint64_t deadline_ns,
                         struct bhi_file_answer *out, bh_detail *detail) {
    struct bh_buffer *answer;
    bh_status status =
        bhi_file_inspect(file, source->header_timeout_ns, deadline_ns, 0, CALL, &answer, detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_copy_once(out, answer->pointer, sizeof *out); /* the loader can still write there */
    bh_buffer_release(answer);
    if (out->refused) {
        return bhi_file_refused(file, out->refused, out->error, out->text, CALL, detail);
    }
    const struct bhi_file_extent extent = {out->offset, out->bytes};
    if (bhi_file_makes_sense(file, out->dtype, out->dimensions, out->shape, extent)) {
        return BH_OK;
    }
    return bhi_file_senseless(file, CALL, detail);
}

/* BH_FILE_RAW: there is no header to parse. Checks that the requested range is in the file. */
static bh_status take_range(const struct bhi_file *file, const bh_file_source *source,
                            struct bhi_file_answer *out, bh_detail *detail) {
    uint64_t there = file->info.size;
    out->offset = source->offset;
    out->bytes = source->size == BH_WHOLE_SIZE && source->offset <= there ? there - source->offset
                                                                          : source->size;
    if (out->offset <= there && out->bytes <= there - out->offset) {
        return BH_OK;
    }
    if (source->size == BH_WHOLE_SIZE) {
        return BHI_FAIL(detail, CALL, BH_REASON_OUTSIDE, "offset", .place = file->name,
                        .status = BH_LOAD_FAILED, .value = source->offset, .limit = there,
                        .text = "file");
    }
    return BHI_FAIL(detail, CALL, BH_REASON_PAST_END, "size", .place = file->name,
                    .status = BH_LOAD_FAILED, .value = source->offset, .limit = there,
                    .text = "file");
}

/* -- the calls -------------------------------------------------------------------------------- */

static bh_status take_source(const bh_file_source *given, bh_file_source *source,
                             bh_detail *detail) {
    bh_status status = bhi_file_source_take(given, source, CALL, detail);
    if (status != BH_OK) {
        return status;
    }
    if (source->format != BH_FILE_SAFETENSORS) {
        return source->tensor ? BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "source.tensor",
                                         .text = "is for BH_FILE_SAFETENSORS")
                              : BH_OK;
    }
    const size_t capacity = sizeof((struct bhi_msg_file_attach *)0)->tensor;
    if (!source->tensor || !source->tensor[0]) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source.tensor is %s",
                        source->tensor ? "empty" : "NULL");
    }
    if (strlen(source->tensor) >= capacity) {
        return BHI_FAIL(detail, CALL, BH_REASON_TOO_LONG, "source.tensor", .limit = capacity - 1);
    }
    if (!bhi_text_is_line(source->tensor)) {
        return BHI_FAIL(detail, CALL, BH_REASON_NOT_TEXT, "source.tensor");
    }
    return BH_OK;
}

/* Determines where the memory is. With a stream, the file is loaded for the stream's tenant. */
static bh_status take_memory(const bh_context *context, bh_file_source *source, bool *out_device,
                             bh_detail *detail) {
    if (source->stream && !bhi_handle_live(&source->stream->handle)) {
        return BHI_FAIL(detail, CALL, BH_REASON_RELEASED, "source.stream");
    }
    if (source->stream && source->stream->context != context) {
        return BHI_FAIL(detail, CALL, BH_REASON_OTHER_CONTEXT, "source.stream");
    }
    if (source->stream && source->tenant && strcmp(source->tenant, source->stream->tenant) != 0) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.tenant is \"%s\", and source.stream is of tenant \"%s\"",
                        source->tenant, source->stream->tenant);
    }
    if (source->stream) {
        source->tenant = source->stream->tenant;
    }
    return bhi_device_memory_resolve(source->stream, source->memory, CALL, out_device, detail);
}

static bh_status start_load(struct bhi_file *file, struct bh_buffer *buffer,
                            const bh_file_source *source, const struct bhi_file_answer *what,
                            bh_detail *detail) {
    struct bhi_load *load = calloc(1, sizeof *load);
    if (!load) {
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    load->array.dtype = (bh_dtype)what->dtype;
    load->array.rank = what->dimensions;
    memcpy(load->array.shape, what->shape, what->dimensions * sizeof what->shape[0]);
    const struct bhi_cmd_load command = {
        .header = {.type = BHI_CMD_LOAD, .size = sizeof command},
        .file = file->info.file,
        .buffer = buffer->id,
        .offset = what->offset,
        .bytes = what->bytes,
    };
    bh_status status =
        buffer->device && what->bytes
            ? bhi_load_pieces(file, buffer, &command, source->deadline_ns, CALL, load, detail)
            : bhi_file_submit(file, buffer, &command, sizeof command, NULL, source->deadline_ns,
                              BHI_FILE_WHOLE, CALL, &load->event, detail);
    if (status != BH_OK) {
        free(load);
        return status;
    }
    /* The buffer itself is the first holder of a public reference to the event. */
    atomic_store(&load->event->handle.count, 1);
    buffer->load = load;
    return BH_OK;
}

BH_API bh_status bh_buffer_from_file(bh_context *context, const bh_file_source *given,
                                     bh_buffer **out_buffer, bh_detail *detail) {
    if (!out_buffer) {
        return BHI_FAIL(detail, CALL, BH_REASON_NULL, "out_buffer");
    }
    *out_buffer = NULL;
    bh_file_source all;
    const bh_file_source *source = &all;
    bh_status status = bhi_context_check(context, CALL, detail);
    if (status == BH_OK) {
        status = take_source(given, &all, detail);
    }
    bool on_device = false;
    if (status == BH_OK) {
        status = take_memory(context, &all, &on_device, detail);
    }
    if (status != BH_OK) {
        return status;
    }
    uint64_t deadline_ns = bhi_deadline_ns(source->header_timeout_ns);
    struct bhi_file *file;
    status = bhi_file_open(context, source, deadline_ns, CALL, &file, detail);
    if (status != BH_OK) {
        return status;
    }
    struct bhi_file_answer what = {0};
    struct bh_buffer *buffer = NULL;
    status = source->format == BH_FILE_RAW ? take_range(file, source, &what, detail)
                                           : inspect(file, source, deadline_ns, &what, detail);
    if (status == BH_OK) {
        status = on_device
                     ? bhi_buffer_make_device(source->stream, what.bytes, CALL, &buffer, detail)
                     : bhi_buffer_make(context, what.bytes, CALL, &buffer, detail);
    }
    if (status == BH_OK) {
        status = start_load(file, buffer, source, &what, detail);
    }
    bhi_file_unref(file);
    if (status != BH_OK) {
        bh_buffer_release(buffer);
    } else {
        *out_buffer = buffer;
    }
    return status;
}

BH_API bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event, bh_detail *detail) {
    if (!out_event) {
        return BHI_FAIL(detail, "bh_buffer_load_event", BH_REASON_NULL, "out_event");
    }
    *out_event = NULL;
    if (!BHI_LIVE(buffer) || !buffer->load) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_buffer_load_event: %s",
                        BHI_LIVE(buffer) ? "the buffer is not from a file"
                                         : "buffer is NULL or was released");
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
    bh_status status = check_loaded(buffer, call, detail);
    if (status != BH_OK) {
        return status;
    }
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
    bh_status status = check_loaded(buffer, call, detail);
    if (status == BH_OK && !out_info) {
        status = BHI_FAIL(detail, call, BH_REASON_NULL, "out_info");
    }
    if (status == BH_OK) {
        status = bhi_layout_check(BHI_OURS(bh_array_info), out_info, call, "out_info", detail);
    }
    if (status == BH_OK) {
        bhi_layout_give(out_info, &buffer->load->array, sizeof buffer->load->array);
    }
    return status;
}
