/* Buffers, and files that are read into them. */
#include "script.h"
#include "tool/npy_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bh_status make(uint64_t size, bh_buffer **out_buffer, bh_detail *detail) {
    bh_status status = script_answer("SCRIPT_BUFFER", detail);
    if (status != BH_OK) {
        return status;
    }
    *out_buffer = script_new(sizeof **out_buffer);
    (*out_buffer)->size = size;
    (*out_buffer)->bytes = script_new(size + 1);
    return BH_OK;
}

static bh_status load(const bh_buffer_options *options, bh_buffer **out_buffer, bh_detail *detail) {
    const bh_file_source *source = options->file;
    struct bhi_npy_file file;
    struct bhi_complaint complaint;
    script_counts.loads++;
    bh_status status = script_answer("SCRIPT_FILE", detail);
    if (status != BH_OK) {
        return status;
    }
    if (getenv("SCRIPT_FILE_HANG")) {
        script_wait_closed();
        snprintf(detail->message, sizeof detail->message, "the path is %s", source->path);
        return detail->status = BH_CLOSED;
    }
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "file: tenant '%s'\n", options->stream ? options->stream->tenant : "");
    }
    if (!bhi_npy_file_open(source->path, &file, &complaint)) {
        snprintf(detail->message, sizeof detail->message, "bh_buffer_create: %s: %.400s",
                 source->path, complaint.text);
        return detail->status = strstr(complaint.text, "memory") ? BH_NO_MEMORY : BH_LOAD_FAILED;
    }
    status = make(file.array.bytes, out_buffer, detail);
    if (status == BH_OK) {
        bh_buffer *buffer = *out_buffer;
        buffer->array.dtype = file.array.dtype;
        buffer->array.rank = file.array.dimensions;
        memcpy(buffer->array.shape, file.array.shape, sizeof file.array.shape);
        if (!bhi_npy_file_read(&file, buffer->bytes, &complaint)) {
            abort();
        }
        buffer->from_file = true;
    }
    bhi_npy_file_close(&file);
    return status;
}

bh_status bh_buffer_create(bh_context *context, uint64_t size, const bh_buffer_options *options,
                           bh_buffer **out_buffer, bh_detail *detail) {
    return options && options->file ? load(options, out_buffer, detail)
                                    : make(size, out_buffer, detail);
}

bh_memory bh_buffer_memory(const bh_buffer *buffer) {
    return BH_MEMORY_HOST;
}

bh_status bh_buffer_array(const bh_buffer *buffer, bh_array_info *out_info, bh_detail *detail) {
    *out_info = buffer->array;
    return BH_OK;
}

uint64_t bh_buffer_size(const bh_buffer *buffer) {
    return buffer->size;
}

bh_status bh_buffer_load_progress(bh_buffer *buffer, uint64_t *out_done, uint64_t *out_total,
                                  bh_detail *detail) {
    *out_done = buffer->size / 2;
    *out_total = buffer->size;
    return BH_OK;
}

bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event, bh_detail *detail) {
    if (!buffer->from_file) {
        return BH_INVALID_ARGUMENT;
    }
    bh_event *event = script_new(sizeof *event);
    event->verdict.status = script_answer("SCRIPT_LOAD", NULL);
    event->verdict.exit_code = -1;
    if (event->verdict.status != BH_OK) {
        snprintf(event->verdict.message, sizeof event->verdict.message, "%s", script_message());
    }
    event->until = getenv("SCRIPT_LOAD_UNTIL");
    event->pending = getenv("SCRIPT_LOAD_HANG") || event->until;
    *out_event = event;
    return BH_OK;
}

bh_status bh_buffer_map(bh_buffer *buffer, bh_map_intent intent, uint64_t timeout_ns,
                        void **out_pointer, bh_detail *detail) {
    bh_status status = intent == BH_MAP_READ ? script_answer("SCRIPT_MAP", detail) : BH_OK;
    *out_pointer = buffer->bytes;
    return status;
}

bh_status bh_buffer_read(bh_buffer *buffer, uint64_t offset, void *out_bytes, uint64_t size,
                         uint64_t timeout_ns, bh_detail *detail) {
    const bh_status status = script_answer("SCRIPT_MAP", detail);
    if (status == BH_OK) {
        memcpy(out_bytes, buffer->bytes + offset, size);
    }
    return status;
}

void bh_buffer_retain(bh_buffer *buffer) {
    buffer->references++;
}

void bh_buffer_release(bh_buffer *buffer) {
    if (buffer && buffer->references-- > 0) {
        return;
    }
    if (buffer) {
        script_free(buffer->bytes);
    }
    script_free(buffer);
}
