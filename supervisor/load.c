/* bh_buffer_from_file: a buffer whose content a loader reads. Two submissions to a loader's stream:
 * one has the header parsed and is waited for, the other reads the data. Deadlines, deaths, poison
 * and cancelling are those of any submission. */
#include "load.h"
#include "buffer.h"
#include "callback.h"
#include "commands.h"
#include "context.h"
#include "copy_once.h"
#include "core/detail.h"
#include "errand.h"
#include "event.h"
#include "file.h"
#include "file_answer.h"
#include "futex.h"
#include "layout.h"
#include "loaders.h"
#include "stream.h"
#include "text.h"
#include "worker_proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_TIMEOUT_NS (10ull * 1000000000)
#define LOAD_DEADLINE_NS  (600ull * 1000000000)
#define CALL              "bh_buffer_from_file"

_Static_assert(BHI_FILE_DIMENSIONS == sizeof((bh_array_info *)0)->shape / sizeof(uint64_t),
               "as many dimensions as can be told");

BH_API void bh_file_source_init_sized(bh_file_source *source, size_t size) {
    static const bh_file_source defaults = {
        .fd = -1,
        .size = BH_WHOLE_SIZE,
        .header_timeout_ns = HEADER_TIMEOUT_NS,
        .deadline_ns = LOAD_DEADLINE_NS,
    };
    bhi_layout_init(source, size, &defaults, sizeof defaults);
}

/* -- the two submissions ---------------------------------------------------------------------- */

/* |command| is about |file| and fills |buffer|. *out_event is referenced. |quiet|: how it ends is
 * the caller's to tell, and counts as nobody's failure. */
static bh_status submit(struct bhi_file *file, struct bh_buffer *buffer, const void *command,
                        size_t size, uint64_t deadline_ns, bool quiet, struct bh_event **out_event,
                        bh_detail *detail) {
    struct bh_stream *stream;
    bh_status status = bhi_loaders_pick(file->context, quiet, CALL, &stream, detail);
    if (status != BH_OK)
        return status;
    const struct bhi_errand errand = {
        .call = CALL,
        .command = command,
        .size = size,
        .file = file,
        .fills = buffer,
        .deadline_ns = deadline_ns,
        .quiet = quiet,
    };
    status = bhi_errand_submit(stream, &errand, out_event, detail);
    bhi_stream_unref(stream);
    return status;
}

static bh_status await_inspection(struct bh_event *event, const struct bhi_file *file,
                                  uint64_t deadline_ns, bh_detail *detail) {
    bh_status status = bhi_event_await(event, deadline_ns);
    if (status != BH_OK) {
        /* A loader that is held up by it is of no use any more. */
        bhi_context_lock(event->context);
        if (event->submission)
            bhi_submission_cancel(event->submission);
        bhi_context_unlock(event->context);
        return bhi_fail(detail, status, 0, CALL ": %s: its header was not parsed in time",
                        file->name);
    }
    if (event->verdict.status == BH_OK)
        return BH_OK;
    if (event->verdict.status == BH_DEADLINE)
        return bhi_fail(detail, BH_TIMEOUT, 0, CALL ": %s: its header was not parsed in time",
                        file->name);
    return bhi_fail(detail, event->verdict.status, 0, CALL ": %.400s", event->verdict.message);
}

/* -- what the loader says --------------------------------------------------------------------- */

static uint32_t dtype_bytes(uint32_t dtype) {
    static const uint8_t bytes[] = {
        [BH_DTYPE_F16] = 2,  [BH_DTYPE_F32] = 4,     [BH_DTYPE_F64] = 8,     [BH_DTYPE_I8] = 1,
        [BH_DTYPE_U8] = 1,   [BH_DTYPE_I16] = 2,     [BH_DTYPE_U16] = 2,     [BH_DTYPE_I32] = 4,
        [BH_DTYPE_U32] = 4,  [BH_DTYPE_I64] = 8,     [BH_DTYPE_U64] = 8,     [BH_DTYPE_BF16] = 2,
        [BH_DTYPE_BOOL] = 1, [BH_DTYPE_F8_E4M3] = 1, [BH_DTYPE_F8_E5M2] = 1,
    };
    return dtype < sizeof bytes ? bytes[dtype] : 0;
}

/* It need not be true, but it has to make sense: the range lies in the file, and is as long as the
 * array takes. */
static bool makes_sense(const struct bhi_file_answer *answer, uint64_t file_bytes) {
    uint64_t bytes = dtype_bytes(answer->dtype);
    if (!bytes || answer->dimensions > BHI_FILE_DIMENSIONS || answer->offset > file_bytes ||
        answer->bytes > file_bytes - answer->offset)
        return false;
    bool empty = false;
    for (uint32_t i = 0; i < answer->dimensions; i++) {
        empty = empty || !answer->shape[i];
        if (answer->shape[i] && __builtin_mul_overflow(bytes, answer->shape[i], &bytes))
            return false;
    }
    return answer->bytes == (empty ? 0 : bytes);
}

static bh_status take_answer(const struct bh_buffer *buffer, const struct bhi_file *file,
                             struct bhi_file_answer *out, bh_detail *detail) {
    bhi_copy_once(out, buffer->pointer, sizeof *out); /* the loader can still write there */
    if (out->refused) {
        char why[BHI_FILE_TEXT];
        bhi_text_line(why, sizeof why, out->text, sizeof out->text);
        bhi_fail(detail, BH_LOAD_FAILED, 0, CALL ": %s: %s", file->name, why);
        if (detail && out->error > 0 && out->error < 4096)
            detail->sys_errno = out->error; /* its words are in the text */
        return BH_LOAD_FAILED;
    }
    if (makes_sense(out, file->info.size))
        return BH_OK;
    return bhi_fail(detail, BH_PROTOCOL, 0, CALL ": %s: what the loader says of it makes no sense",
                    file->name);
}

static bh_status inspect(struct bhi_file *file, const bh_file_source *source, uint64_t deadline_ns,
                         struct bhi_file_answer *out, bh_detail *detail) {
    bh_status status = bhi_callback_check(CALL, detail);
    if (status != BH_OK)
        return status;
    struct bh_buffer *answer;
    status = bhi_buffer_make(file->context, sizeof *out, CALL, &answer, detail);
    if (status != BH_OK)
        return status;
    const struct bhi_cmd_inspect command = {
        .header = {.type = BHI_CMD_INSPECT, .size = sizeof command},
        .file = file->info.file,
        .answer = answer->id,
    };
    struct bh_event *event = NULL;
    status = submit(file, answer, &command, sizeof command, source->header_timeout_ns, true, &event,
                    detail);
    if (status == BH_OK) {
        status = await_inspection(event, file, deadline_ns, detail);
        if (status == BH_OK)
            status = take_answer(answer, file, out, detail);
        bhi_event_unref(event);
    }
    bh_buffer_release(answer);
    return status;
}

/* A raw range has no header: what is asked for has to be there. */
static bh_status take_range(const struct bhi_file *file, const bh_file_source *source,
                            struct bhi_file_answer *out, bh_detail *detail) {
    uint64_t there = file->info.size;
    out->offset = source->offset;
    out->bytes = source->size == BH_WHOLE_SIZE && source->offset <= there ? there - source->offset
                                                                          : source->size;
    if (out->offset <= there && out->bytes <= there - out->offset)
        return BH_OK;
    if (source->size == BH_WHOLE_SIZE)
        return bhi_fail(detail, BH_LOAD_FAILED, 0,
                        CALL ": %s: offset %llu is outside the file of %llu bytes", file->name,
                        (unsigned long long)source->offset, (unsigned long long)there);
    return bhi_fail(detail, BH_LOAD_FAILED, 0,
                    CALL ": %s: offset %llu and size %llu leave the file of %llu bytes", file->name,
                    (unsigned long long)source->offset, (unsigned long long)source->size,
                    (unsigned long long)there);
}

/* -- the calls -------------------------------------------------------------------------------- */

static bh_status take_source(const bh_file_source *given, bh_file_source *source,
                             bh_detail *detail) {
    if (!given)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source is NULL");
    bh_file_source_init(source);
    bh_status status =
        bhi_layout_take_options(BHI_OURS(bh_file_source), source, given, CALL, "source", detail);
    if (status != BH_OK)
        return status;
    if (!source->path && source->fd < 0)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.path is NULL, and source.fd is no descriptor");
    if (source->format < BH_FILE_RAW || source->format > BH_FILE_SAFETENSORS)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.format %d is not a bh_file_format", source->format);
    if (!source->header_timeout_ns || !source->deadline_ns)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.%s is 0; BH_FOREVER is for none",
                        source->deadline_ns ? "header_timeout_ns" : "deadline_ns");
    if (source->path && !source->path[0])
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source.path is empty");
    if (source->path && source->fd >= 0)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": there are a source.path and a source.fd (%d); -1 is none",
                        source->fd);
    /* What would not be heeded was meant to be. */
    if (source->format != BH_FILE_RAW && (source->offset || source->size != BH_WHOLE_SIZE))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.offset and source.size are for BH_FILE_RAW");
    if (source->format != BH_FILE_SAFETENSORS)
        return source->tensor ? bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                                         CALL ": source.tensor is for BH_FILE_SAFETENSORS")
                              : BH_OK;
    char clean[sizeof((struct bhi_msg_file_attach *)0)->tensor];
    if (!source->tensor || !source->tensor[0])
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source.tensor is %s",
                        source->tensor ? "empty" : "NULL");
    size_t length = strlen(source->tensor);
    if (length >= sizeof clean)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.tensor is longer than %zu bytes", sizeof clean - 1);
    bhi_text_line(clean, sizeof clean, source->tensor, length);
    if (strcmp(clean, source->tensor) != 0)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.tensor is not UTF-8, or has control characters");
    return BH_OK;
}

static bh_status start_load(struct bhi_file *file, struct bh_buffer *buffer,
                            const bh_file_source *source, const struct bhi_file_answer *what,
                            bh_detail *detail) {
    struct bhi_load *load = calloc(1, sizeof *load);
    if (!load)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, CALL);
    load->array.dtype = (bh_dtype)what->dtype;
    load->array.dimensions = what->dimensions;
    memcpy(load->array.shape, what->shape, what->dimensions * sizeof what->shape[0]);
    const struct bhi_cmd_load command = {
        .header = {.type = BHI_CMD_LOAD, .size = sizeof command},
        .file = file->info.file,
        .buffer = buffer->id,
        .offset = what->offset,
        .bytes = what->bytes,
    };
    bh_status status = submit(file, buffer, &command, sizeof command, source->deadline_ns, false,
                              &load->event, detail);
    if (status != BH_OK) {
        free(load);
        return status;
    }
    /* The buffer is its first holder among those who can ask for it. */
    atomic_store(&load->event->handle.count, 1);
    buffer->load = load;
    return BH_OK;
}

BH_API bh_status bh_buffer_from_file(bh_context *context, const bh_file_source *given,
                                     bh_buffer **out_buffer, bh_detail *detail) {
    if (!out_buffer)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": out_buffer is NULL");
    *out_buffer = NULL;
    bh_file_source all;
    const bh_file_source *source = &all;
    bh_status status = bhi_context_check(context, CALL, detail);
    if (status == BH_OK)
        status = take_source(given, &all, detail);
    if (status != BH_OK)
        return status;
    uint64_t deadline_ns = bhi_deadline_ns(source->header_timeout_ns);
    struct bhi_file *file;
    status = bhi_file_open(context, source, deadline_ns, CALL, &file, detail);
    if (status != BH_OK)
        return status;
    struct bhi_file_answer what = {0};
    struct bh_buffer *buffer = NULL;
    status = source->format == BH_FILE_RAW ? take_range(file, source, &what, detail)
                                           : inspect(file, source, deadline_ns, &what, detail);
    if (status == BH_OK)
        status = bhi_buffer_make(context, what.bytes, CALL, &buffer, detail);
    if (status == BH_OK)
        status = start_load(file, buffer, source, &what, detail);
    bhi_file_unref(file);
    if (status != BH_OK)
        bh_buffer_release(buffer);
    else
        *out_buffer = buffer;
    return status;
}

void bhi_load_free(struct bhi_load *load) {
    if (!load)
        return;
    if (bhi_handle_drop(&load->event->handle) == BHI_DROPPED_LAST)
        bhi_event_unref(load->event);
    free(load);
}

BH_API bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event, bh_detail *detail) {
    if (!out_event)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_buffer_load_event: out_event is NULL");
    *out_event = NULL;
    if (!BHI_LIVE(buffer) || !buffer->load)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_buffer_load_event: %s",
                        BHI_LIVE(buffer) ? "the buffer is not from a file"
                                         : "buffer is NULL or was released");
    if (!bhi_handle_retain(&buffer->load->event->handle))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_buffer_load_event: the event was released too often");
    *out_event = buffer->load->event;
    return BH_OK;
}

BH_API bh_status bh_buffer_load_progress(bh_buffer *buffer, uint64_t *out_done,
                                         uint64_t *out_total) {
    if (!BHI_LIVE(buffer) || !buffer->load || !out_done || !out_total)
        return BH_INVALID_ARGUMENT;
    bh_context *context = buffer->context;
    if (bhi_context_forked(context))
        return BH_FORKED;
    const struct bh_event *event = buffer->load->event;
    uint64_t done = 0;
    bhi_context_lock(context);
    const struct bhi_submission *submission = event->submission;
    if (bhi_event_state(event) == BH_EVENT_READY) {
        done = buffer->size;
    } else if (submission && submission->state == BHI_RELEASED) {
        const struct bhi_progress_header *header = bhi_worker_of(submission->crew)->progress.header;
        if (atomic_load_explicit(&header->load_seq, memory_order_acquire) == submission->seq)
            done = atomic_load_explicit(&header->load_bytes, memory_order_relaxed);
        if (done > buffer->size)
            done = buffer->size;
    }
    bhi_context_unlock(context);
    *out_done = done;
    *out_total = buffer->size;
    return BH_OK;
}

BH_API bh_status bh_buffer_array_sized(const bh_buffer *buffer, bh_array_info *out_info,
                                       size_t info_size) {
    if (!BHI_LIVE(buffer) || !buffer->load || !out_info)
        return BH_INVALID_ARGUMENT;
    bh_status status =
        bhi_layout_check(BHI_OURS(bh_array_info), info_size, "bh_buffer_array", "out_info", NULL);
    if (status == BH_OK)
        bhi_layout_give(out_info, info_size, &buffer->load->array, sizeof buffer->load->array);
    return status;
}
