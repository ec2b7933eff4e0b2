/* bh_buffer_create: makes a buffer of new memory, of the caller's memfd, or one whose content a loader
 * reads. If the file has a header, a first submission to a loader has it parsed, and the call waits
 * for that (file_header.h). Further submissions read the data: one, or several into device memory
 * (pieces.h). Deadlines, deaths, poison and cancelling are those of any submission. */
#include "base/copy_once.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/text.h"
#include "ipc/commands.h"
#include "ipc/file_answer.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/event/event.h"
#include "supervisor/file/file.h"
#include "supervisor/load/file_header.h"
#include "supervisor/load/load.h"
#include "supervisor/stream/stream.h"

#include <stdlib.h>
#include <string.h>

#define CALL "bh_buffer_create"

_Static_assert(BHI_FILE_DIMENSIONS == BH_MAX_RANK, "loader and caller agree");

/* -- what is to be read ------------------------------------------------------------------------ */

static bh_status inspect(struct bhi_file *file, const bh_file_source *source, uint64_t deadline_ns,
                         struct bhi_file_answer *out, bh_detail *detail) {
    struct bh_buffer *answer;
    BHI_TRY(
        bhi_file_inspect(file, source->header_timeout_ns, deadline_ns, 0, CALL, &answer, detail));
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
                            uint64_t size, struct bhi_file_answer *out, bh_detail *detail) {
    uint64_t there = file->info.size;
    out->offset = source->offset;
    out->bytes = !size && source->offset <= there ? there - source->offset : size;
    if (out->offset <= there && out->bytes <= there - out->offset) {
        return BH_OK;
    }
    if (!size) {
        return BHI_FAIL(detail, CALL, BH_REASON_OUTSIDE, "offset", .place = file->name,
                        .status = BH_LOAD_FAILED, .value = source->offset, .limit = there,
                        .text = "file");
    }
    return BHI_FAIL(detail, CALL, BH_REASON_PAST_END, "size", .place = file->name,
                    .status = BH_LOAD_FAILED, .value = source->offset, .limit = there,
                    .text = "file");
}

static bh_status take_source(const bh_file_source *given, uint64_t size, bh_file_source *source,
                             bh_detail *detail) {
    BHI_TRY(bhi_file_source_take(given, source, CALL, detail));
    if (source->format != BH_FILE_RAW && size) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "size",
                        .text = "is for BH_FILE_RAW: a header says how large its array is");
    }
    if (source->format != BH_FILE_SAFETENSORS && source->format != BH_FILE_NPZ) {
        return source->tensor ? BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "file.tensor",
                                         .text = "is for BH_FILE_SAFETENSORS and BH_FILE_NPZ")
                              : BH_OK;
    }
    const size_t capacity = sizeof((struct bhi_msg_file_attach *)0)->tensor;
    if (!source->tensor || !source->tensor[0]) {
        return BHI_FAIL(detail, CALL, source->tensor ? BH_REASON_EMPTY : BH_REASON_NULL,
                        "file.tensor");
    }
    if (strlen(source->tensor) >= capacity) {
        return BHI_FAIL(detail, CALL, BH_REASON_TOO_LONG, "file.tensor", .limit = capacity - 1);
    }
    if (!bhi_text_is_line(source->tensor)) {
        return BHI_FAIL(detail, CALL, BH_REASON_NOT_TEXT, "file.tensor");
    }
    return BH_OK;
}

/* With a stream, the file is loaded for the stream's tenant. */
static bh_status take_tenant(const bh_stream *stream, bh_file_source *source, bh_detail *detail) {
    if (stream && source->tenant && strcmp(source->tenant, stream->tenant) != 0) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "file.tenant",
                        .text = BHI_SAY("is \"%s\", and options.stream is of tenant \"%s\"",
                                        source->tenant, stream->tenant));
    }
    source->tenant = stream ? stream->tenant : source->tenant;
    return BH_OK;
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
        .fortran = !!what->fortran,
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

static bh_status load(bh_context *context, const bh_file_source *source, uint64_t size,
                      struct bh_stream *on_device, struct bh_buffer **out_buffer,
                      bh_detail *detail) {
    uint64_t deadline_ns = bhi_deadline_ns(source->header_timeout_ns);
    struct bhi_file *file;
    BHI_TRY(bhi_file_open(context, source, deadline_ns, CALL, &file, detail));
    struct bhi_file_answer what = {0};
    struct bh_buffer *buffer = NULL;
    bh_status status = source->format == BH_FILE_RAW
                           ? take_range(file, source, size, &what, detail)
                           : inspect(file, source, deadline_ns, &what, detail);
    if (status == BH_OK) {
        status = on_device ? bhi_buffer_make_device(on_device, what.bytes, CALL, &buffer, detail)
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

/* -- the call --------------------------------------------------------------------------------- */

static bh_status take_options(const bh_context *context, const bh_buffer_options *given,
                              bh_buffer_options *options, bh_detail *detail) {
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_buffer_options), options, given, CALL, "options", detail));
    const struct bh_stream *stream = options->stream;
    if (options->flags & ~(uint32_t)BH_BUFFER_UNINITIALIZED) {
        return BHI_FAIL(detail, CALL, BH_REASON_UNKNOWN_BIT, "options.flags",
                        .value = options->flags);
    }
    if (stream && !bhi_handle_live(&stream->handle)) {
        return BHI_FAIL(detail, CALL, BH_REASON_RELEASED, "options.stream");
    }
    if (stream && stream->context != context) {
        return BHI_FAIL(detail, CALL, BH_REASON_OTHER_CONTEXT, "options.stream");
    }
    if (options->memfd && (options->file || options->memory != BH_MEMORY_HOST)) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "options.memfd",
                        .text = "is memory of the host, without options.file");
    }
    return BH_OK;
}

BH_API bh_status bh_buffer_create(bh_context *context, uint64_t size,
                                  const bh_buffer_options *given, bh_buffer **out_buffer,
                                  bh_detail *detail) {
    BHI_NEED(out_buffer, CALL, detail);
    *out_buffer = NULL;
    bh_buffer_options options = {0};
    bh_file_source source;
    bool on_device = false;
    BHI_TRY(bhi_context_check(context, CALL, detail));
    if (given) {
        BHI_TRY(take_options(context, given, &options, detail));
    }
    if (options.file) {
        BHI_TRY(take_source(options.file, size, &source, detail));
        BHI_TRY(take_tenant(options.stream, &source, detail));
    }
    BHI_TRY(bhi_device_memory_resolve(options.stream, options.memory, CALL, &on_device, detail));
    if (options.file) {
        return load(context, &source, size, on_device ? options.stream : NULL, out_buffer, detail);
    }
    if (options.memfd) {
        return bhi_buffer_wrap(context, *options.memfd, size, out_buffer, detail);
    }
    const struct bhi_buffer_order order = {
        .call = CALL, .size = size, .stream = options.stream, .flags = options.flags};
    return on_device ? bhi_buffer_make_device(options.stream, size, CALL, out_buffer, detail)
                     : bhi_buffer_create(context, &order, out_buffer, detail);
}
