#include "judge/check/content.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint64_t limit_ns = 10000000000u; /* for a buffer that nobody uses */

void *bhi_content_room(uint64_t size) {
    enum { LARGE = 4 << 20, PAGE = 2 << 20 };
    if (size < LARGE || size > SIZE_MAX - PAGE) {
        return malloc(size);
    }
    const size_t pages = (size + PAGE - 1) / PAGE * PAGE;
    void *const room = aligned_alloc(PAGE, pages);
    if (room) {
        (void)madvise(room, pages, MADV_HUGEPAGE); /* as it is elsewhere */
    }
    return room;
}

bool bhi_content_make(bh_context *context, bh_stream *near, uint64_t size, bh_buffer **out_buffer,
                      struct bhi_judge_outcome *outcome) {
    bh_buffer_options options = {.struct_size = sizeof options};
    bh_detail detail = {0};
    options.stream = near;
    options.flags = BH_BUFFER_UNINITIALIZED; /* all of it is written, here or by a trusted kernel */
    options.memory = near ? BH_MEMORY_AUTO : BH_MEMORY_HOST;
    const bh_status status = bh_buffer_create(context, size, &options, out_buffer, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

bool bhi_content_is_mapped(const bh_buffer *buffer) {
    return bh_buffer_memory(buffer) == BH_MEMORY_HOST;
}

static bool map(bh_buffer *buffer, bh_map_intent intent, void **out_room,
                struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    const bh_status status = bh_buffer_map(buffer, intent, limit_ns, out_room, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

static bool allocate(uint64_t size, void **out_room, struct bhi_judge_outcome *outcome) {
    *out_room = bhi_content_room(size);
    return *out_room || bhi_judge_outcome_memory(outcome);
}

bool bhi_content_begin(bh_buffer *buffer, uint64_t size, void **out_room,
                       struct bhi_judge_outcome *outcome) {
    return bhi_content_is_mapped(buffer) ? map(buffer, BH_MAP_DISCARD, out_room, outcome)
                                         : allocate(size, out_room, outcome);
}

bool bhi_content_write(bh_buffer *buffer, uint64_t offset, const void *bytes, uint64_t size,
                       struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    const bh_status status = bh_buffer_write(buffer, offset, bytes, size, limit_ns, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

bool bhi_content_commit(bh_buffer *buffer, uint64_t size, void *room,
                        struct bhi_judge_outcome *outcome) {
    if (bhi_content_is_mapped(buffer)) {
        return true;
    }
    const bool good = bhi_content_write(buffer, 0, room, size, outcome);
    free(room);
    return good;
}

bool bhi_content_read(bh_buffer *buffer, uint64_t offset, uint64_t size, void **out_room,
                      struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    if (bhi_content_is_mapped(buffer)) {
        const bool good = map(buffer, BH_MAP_READ, out_room, outcome);
        *out_room = good ? (uint8_t *)*out_room + offset : NULL;
        return good;
    }
    if (!allocate(size, out_room, outcome)) {
        return false;
    }
    const bh_status status = bh_buffer_read(buffer, offset, *out_room, size, limit_ns, &detail);
    if (status != BH_OK) {
        free(*out_room);
    }
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

void bhi_content_leave(bh_buffer *buffer, void *room) {
    if (!bhi_content_is_mapped(buffer)) {
        free(room);
    }
}

void *bhi_content_take(bh_buffer *buffer, void *room, uint64_t offset, uint64_t size) {
    void *const taken = bhi_content_is_mapped(buffer) ? bhi_content_room(size) : room;
    return taken ? memmove(taken, (uint8_t *)room + offset, size) : NULL;
}
