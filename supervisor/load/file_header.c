#include "supervisor/load/file_header.h"
#include "base/detail.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/dtype.h"
#include "ipc/commands.h"
#include "ipc/file_answer.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/event/event.h"
#include "supervisor/load/loaders.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/internal.h"

#include <string.h>

#define HEADER_TIMEOUT_NS (10ull * 1000000000)
#define LOAD_DEADLINE_NS  (600ull * 1000000000)

/* -- submissions ---------------------------------------------------------------------- */

bh_status bhi_file_submit(struct bhi_file *file, struct bh_buffer *buffer, const void *command,
                          size_t size, struct bh_event *after, uint64_t deadline_ns,
                          enum bhi_file_part part, const char *call, struct bh_event **out_event,
                          bh_detail *detail) {
    struct bh_stream *stream;
    const bool header = part == BHI_FILE_HEADER;
    BHI_TRY(bhi_loaders_pick(file->context, file->tenant, header, call, &stream, detail));
    const struct bhi_internal_submission internal = {
        .call = call,
        .command = command,
        .size = size,
        .file = file,
        .load_bytes = header ? 0 : ((const struct bhi_cmd_load *)command)->bytes,
        .fills = buffer,
        .after = after,
        .deadline_ns = deadline_ns,
        .hidden = part != BHI_FILE_WHOLE,
        .failure_uncounted = header,
    };
    bh_status status = bhi_internal_submit(stream, &internal, out_event, detail);
    bhi_stream_unref(stream);
    return status;
}

static bh_status await_inspection(struct bh_event *event, const struct bhi_file *file,
                                  uint64_t deadline_ns, const char *call, bh_detail *detail) {
    bh_status status = bhi_event_await(event, deadline_ns);
    if (status != BH_OK) {
        bh_detail trouble = {0};
        /* Cancelled, because the loader would go on waiting for the file. */
        bhi_context_lock(event->context);
        if (event->submission) {
            const struct bhi_core_stream *stream = event->submission->stream;
            if (!stream->worker) {
                trouble = stream->trouble;
            }
            bhi_submission_cancel(event->submission);
        }
        bhi_context_pump_unlock(event->context);
        return BHI_FAIL(detail, call,
                        trouble.message[0] ? BH_REASON_NO_WORKER : BH_REASON_HEADER_LATE,
                        file->name, .subject = BH_SUBJECT_FILE, .place = file->name,
                        .status = status, .after = &trouble);
    }
    if (event->verdict.status == BH_OK) {
        return BH_OK;
    }
    if (event->verdict.status == BH_DEADLINE) {
        return BHI_FAIL(detail, call, BH_REASON_HEADER_LATE, file->name, .place = file->name);
    }
    return BHI_FAIL(detail, call, event->verdict.reason, .status = event->verdict.status,
                    .said = event->verdict.message);
}

/* -- what the loader says --------------------------------------------------------------------- */

bool bhi_file_makes_sense(const struct bhi_file *file, uint32_t dtype, uint32_t dimensions,
                          const uint64_t *shape, struct bhi_file_extent extent) {
    uint64_t bytes = bhi_dtype_any_size((bh_dtype)dtype);
    const uint64_t file_bytes = file->info.size;
    if (!bytes || dimensions > BHI_FILE_DIMENSIONS || extent.offset > file_bytes ||
        extent.bytes > file_bytes - extent.offset) {
        return false;
    }
    bool empty = false;
    for (uint32_t i = 0; i < dimensions; i++) {
        empty = empty || !shape[i];
        if (shape[i] && __builtin_mul_overflow(bytes, shape[i], &bytes)) {
            return false;
        }
    }
    return extent.bytes == (empty ? 0 : bytes);
}

bh_status bhi_file_senseless(const struct bhi_file *file, const char *call, bh_detail *detail) {
    return BHI_FAIL(detail, call, BH_REASON_IMPOSSIBLE, file->name, .text = "the loader");
}

bh_status bhi_file_refused(const struct bhi_file *file, uint32_t refused, int32_t error,
                           const char *text, const char *call, bh_detail *detail) {
    const bool known = bhi_reason_from_worker(refused, BH_LOAD_FAILED);
    char why[BHI_FILE_TEXT];
    bhi_text_line(why, sizeof why, text, BHI_FILE_TEXT);
    BHI_FAIL(detail, call, known ? (bh_reason)refused : BH_REASON_NONE, file->name,
             .status = BH_LOAD_FAILED, .subject = BH_SUBJECT_FILE, .place = file->name,
             .text = why);
    if (detail && error > 0 && error < 4096) {
        detail->sys_errno = error; /* |text| already explains it */
    }
    return BH_LOAD_FAILED;
}

bh_status bhi_file_inspect(struct bhi_file *file, uint64_t timeout_ns, uint64_t deadline_ns,
                           uint64_t room, const char *call, struct bh_buffer **out_answer,
                           bh_detail *detail) {
    BHI_TRY(bhi_callback_check(call, detail));
    struct bh_buffer *answer;
    const uint64_t bytes = room ? bhi_file_list_bytes(room) : sizeof(struct bhi_file_answer);
    BHI_TRY(bhi_buffer_make(file->context, bytes, call, &answer, detail));
    const struct bhi_cmd_inspect command = {
        .header = {.type = BHI_CMD_INSPECT, .size = sizeof command},
        .file = file->info.file,
        .answer = answer->id,
        .room = room,
    };
    struct bh_event *event = NULL;
    bh_status status = bhi_file_submit(file, answer, &command, sizeof command, NULL, timeout_ns,
                                       BHI_FILE_HEADER, call, &event, detail);
    if (status == BH_OK) {
        status = await_inspection(event, file, deadline_ns, call, detail);
        bhi_event_unref(event);
    }
    if (status == BH_OK) {
        *out_answer = answer;
    } else {
        bh_buffer_release(answer);
    }
    return status;
}

/* -- what the caller wants -------------------------------------------------------------------- */

bh_status bhi_file_source_take(const bh_file_source *given, bh_file_source *source,
                               const char *call, bh_detail *detail) {
    if (!given) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "file");
    }
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_file_source), source, given, call, "file", detail));
    if (!source->path && source->fd < 0) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "file.path",
                        .text = "is NULL, and file.fd is not a descriptor");
    }
    if (source->format < BH_FILE_RAW || source->format > BH_FILE_NPZ) {
        return BHI_FAIL(detail, call, BH_REASON_UNKNOWN_VALUE, "file.format",
                        .value = (uint64_t)source->format, .text = "bh_file_format");
    }
    source->header_timeout_ns =
        source->header_timeout_ns ? source->header_timeout_ns : HEADER_TIMEOUT_NS;
    source->deadline_ns = source->deadline_ns ? source->deadline_ns : LOAD_DEADLINE_NS;
    if (source->path && !source->path[0]) {
        return BHI_FAIL(detail, call, BH_REASON_EMPTY, "file.path");
    }
    if (source->tenant && strlen(source->tenant) >= BHI_TENANT) {
        return BHI_FAIL(detail, call, BH_REASON_TOO_LONG, "file.tenant", .limit = BHI_TENANT - 1);
    }
    /* Refused, because a field that would be ignored is probably a mistake. */
    if (source->format != BH_FILE_RAW && source->offset) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "file.offset",
                        .text = "is for BH_FILE_RAW");
    }
    return BH_OK;
}
