/* bh_file_tensors: has a loader list the arrays of a file. */
#include "base/copy_once.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/owner.h"
#include "base/text.h"
#include "ipc/file_answer.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/load/file_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALL "bh_file_tensors"

_Static_assert(BHI_FILE_NAME == sizeof((bh_file_tensor *)0)->name, "loader and caller agree");
_Static_assert(BHI_FILE_TYPE == sizeof((bh_file_tensor *)0)->type, "loader and caller agree");
_Static_assert(BHI_FILE_DIMENSIONS == BH_MAX_RANK, "loader and caller agree");

/* The caller's array. */
struct room {
    bh_file_tensor *tensors;
    size_t capacity, size; /* elements; bytes of each */
};

/* If the dtype is unknown, only the rank and the extent are checked. */
static bool row_makes_sense(const struct bhi_file *file, const struct bhi_file_row *row) {
    const struct bhi_file_extent extent = {row->offset, row->bytes};
    if (row->dtype != BH_DTYPE_NONE) {
        return bhi_file_makes_sense(file, row->dtype, row->dimensions, row->shape, extent);
    }
    return row->dimensions <= BHI_FILE_DIMENSIONS &&
           bhi_file_makes_sense(file, BH_DTYPE_U8, 1, &extent.bytes, extent);
}

static bool take_row(const struct bhi_file *file, const struct bhi_file_row *theirs,
                     struct bhi_file_row *copy, bh_file_tensor *out) {
    bhi_copy_once(copy, theirs, sizeof *copy); /* the loader can still write there */
    if (!row_makes_sense(file, copy)) {
        return false;
    }
    memset(out, 0, sizeof *out);
    out->dtype = (bh_dtype)copy->dtype;
    out->rank = copy->dimensions;
    memcpy(out->shape, copy->shape, copy->dimensions * sizeof copy->shape[0]);
    out->offset = copy->offset;
    out->bytes = copy->bytes;
    bhi_text_line(out->type, sizeof out->type, copy->type, sizeof copy->type);
    bhi_text_line(out->name, sizeof out->name, copy->name, sizeof copy->name);
    return true;
}

static bh_status take_list(const struct bhi_file *file, const struct bh_buffer *answer,
                           const struct room *room, size_t *out_count, bh_detail *detail) {
    struct bhi_file_list list;
    bhi_copy_once(&list, answer->pointer, sizeof list);
    if (list.refused) {
        return bhi_file_refused(file, list.refused, list.error, list.text, CALL, detail);
    }
    if (list.count > BHI_FILE_TENSORS) {
        return bhi_file_senseless(file, CALL, detail);
    }
    BHI_AUTO_FREE struct {
        struct bhi_file_row row;
        bh_file_tensor tensor;
    } *one = malloc(sizeof *one);
    if (!one) {
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    bh_status status = BH_OK;
    const uint8_t *rows = (const uint8_t *)answer->pointer + sizeof list;
    for (size_t i = 0; i < list.count && i < room->capacity && status == BH_OK; i++) {
        const void *row = rows + i * sizeof one->row;
        if (take_row(file, row, &one->row, &one->tensor)) {
            bhi_layout_put(room->tensors, i, room->size, &one->tensor, sizeof one->tensor);
        } else {
            status = bhi_file_senseless(file, CALL, detail);
        }
    }
    if (status == BH_OK) {
        *out_count = list.count;
    }
    return status;
}

static bh_status take_source(const bh_file_source *given, bh_file_source *source,
                             bh_detail *detail) {
    BHI_TRY(bhi_file_source_take(given, source, CALL, detail));
    if (source->format == BH_FILE_RAW) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "file.format",
                        .text = "is BH_FILE_RAW, which has no header");
    }
    if (source->tensor) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "file.tensor", .text = "is not NULL");
    }
    return BH_OK;
}

static bh_status check(bh_context *context, struct room *room, const size_t *out_count,
                       bh_detail *detail) {
    BHI_NEED(out_count, CALL, detail);
    BHI_TRY(bhi_context_check(context, CALL, detail));
    BHI_TRY(bhi_callback_check(CALL, detail));
    return bhi_layout_stride(BHI_OURS(bh_file_tensor), room->tensors, room->capacity, CALL,
                             "out_tensors", &room->size, detail);
}

BH_API bh_status bh_file_tensors(bh_context *context, const bh_file_source *given,
                                 bh_file_tensor *out_tensors, size_t capacity, size_t *out_count,
                                 bh_detail *detail) {
    struct room room = {out_tensors, capacity, 0};
    bh_file_source source;
    if (out_count) {
        *out_count = 0;
    }
    BHI_TRY(check(context, &room, out_count, detail));
    BHI_TRY(take_source(given, &source, detail));
    const uint64_t deadline_ns = bhi_deadline_ns(source.header_timeout_ns);
    struct bhi_file *file;
    BHI_TRY(bhi_file_open(context, &source, deadline_ns, CALL, &file, detail));
    struct bh_buffer *answer;
    const uint64_t rows = capacity < 1                  ? 1
                          : capacity < BHI_FILE_TENSORS ? capacity
                                                        : BHI_FILE_TENSORS;
    bh_status status =
        bhi_file_inspect(file, source.header_timeout_ns, deadline_ns, rows, CALL, &answer, detail);
    if (status == BH_OK) {
        status = take_list(file, answer, &room, out_count, detail);
        bh_buffer_release(answer);
    }
    bhi_file_unref(file);
    return status;
}
