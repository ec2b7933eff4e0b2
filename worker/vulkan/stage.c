#include "worker/vulkan/stage.h"

#include <string.h>

/* Requests a copy of [begin, begin + bytes) of a staged buffer. A buffer has one range, which
 * grows: so bytes between two requests are copied too, and bytes that are requested often are
 * copied once. */
static void need(const struct bhi_vk_backend *b, struct bhi_vk_buffer **list, uint64_t id,
                 uint64_t begin, uint64_t bytes) {
    struct bhi_vk_buffer *buffer = bhi_map_get(&b->buffers, id);
    if (!buffer || !buffer->source || bytes == 0) {
        return;
    }
    const uint64_t end = begin + bytes;
    if (buffer->stage_end == 0) {
        buffer->stage_begin = begin;
        buffer->stage_end = end;
        buffer->next_staged = *list;
        *list = buffer;
    }
    buffer->stage_begin = begin < buffer->stage_begin ? begin : buffer->stage_begin;
    buffer->stage_end = end > buffer->stage_end ? end : buffer->stage_end;
}

static void need_record(const struct bhi_vk_backend *b, struct bhi_vk_buffer **list,
                        const struct bhi_lane_record *record) {
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (command->type == BHI_CMD_COPY) {
            const struct bhi_cmd_copy *copy = (const struct bhi_cmd_copy *)command;
            need(b, list, copy->src, copy->src_offset, copy->bytes);
        } else if (command->type == BHI_CMD_DISPATCH) {
            const struct bhi_cmd_dispatch *dispatch = (const struct bhi_cmd_dispatch *)command;
            const struct bhi_cmd_binding *bindings = bhi_cmd_bindings(dispatch);
            for (uint32_t i = 0; i < dispatch->binding_count; i++) {
                need(b, list, bindings[i].buffer, bindings[i].offset, bindings[i].size);
            }
        }
    }
}

static void copy(struct bhi_vk_buffer *buffer, uint64_t begin, uint64_t end) {
    if (begin < end) {
        memcpy((char *)buffer->pointer + begin, (const char *)buffer->source + begin, end - begin);
    }
}

/* The copied part of a constant buffer stays one range: bytes between it and the new range are
 * copied, too. */
static void extend(struct bhi_vk_buffer *buffer) {
    const uint64_t begin = buffer->staged_begin, end = buffer->staged_end;
    copy(buffer, buffer->stage_begin, begin);
    copy(buffer, end, buffer->stage_end);
    buffer->staged_begin = buffer->stage_begin < begin ? buffer->stage_begin : begin;
    buffer->staged_end = buffer->stage_end > end ? buffer->stage_end : end;
}

static void fill(struct bhi_vk_buffer *buffer) {
    if (!buffer->constant) {
        copy(buffer, buffer->stage_begin, buffer->stage_end);
    } else {
        if (buffer->staged_end == 0) { /* nothing of it is copied yet */
            buffer->staged_begin = buffer->staged_end = buffer->stage_begin;
        }
        extend(buffer);
    }
    buffer->stage_begin = buffer->stage_end = 0;
}

void bhi_vk_stage_chunk(struct bhi_vk_buffer *buffer, uint64_t begin, uint64_t end) {
    const bool copied = buffer->staged_begin <= begin && end <= buffer->staged_end;
    if (buffer->constant && copied) {
        return;
    }
    copy(buffer, begin, end);
    /* What is copied stays one range: a chunk that does not touch it is copied again next time. */
    if (buffer->constant && buffer->staged_end == 0) {
        buffer->staged_begin = begin;
        buffer->staged_end = end;
    } else if (buffer->constant && begin <= buffer->staged_end && end >= buffer->staged_begin) {
        buffer->staged_begin = begin < buffer->staged_begin ? begin : buffer->staged_begin;
        buffer->staged_end = end > buffer->staged_end ? end : buffer->staged_end;
    }
}

void bhi_vk_stage_fill(struct bhi_vk_backend *b, const struct bhi_lane_record *const *records,
                       const size_t *places, uint32_t count) {
    struct bhi_vk_buffer *list = NULL;
    for (uint32_t i = 0; b->staged > 0 && i < count; i++) {
        need_record(b, &list, records[places[i]]);
    }
    for (struct bhi_vk_buffer *buffer = list; buffer; buffer = buffer->next_staged) {
        fill(buffer);
    }
}
