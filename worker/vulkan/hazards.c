#include "worker/vulkan/hazards.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void bhi_hazards_fini(struct bhi_hazards *hazards) {
    free(hazards->ranges);
    memset(hazards, 0, sizeof *hazards);
}

void bhi_hazards_clear(struct bhi_hazards *hazards) {
    hazards->epoch++;
    hazards->count = 0;
    hazards->stages = 0;
}

static uint32_t first(const struct bhi_hazards *hazards, const struct bhi_vk_buffer *buffer) {
    return buffer->epoch == hazards->epoch ? buffer->first_range : 0;
}

bool bhi_hazards_conflict(const struct bhi_hazards *hazards, const struct bhi_vk_buffer *buffer,
                          uint64_t begin, uint64_t end, bool write) {
    /* An empty range touches nothing, even inside another one. */
    for (uint32_t at = begin < end ? first(hazards, buffer) : 0; at != 0;
         at = hazards->ranges[at - 1].next) {
        const struct bhi_hazard_range *range = &hazards->ranges[at - 1];
        if ((write || range->write) && begin < range->end && range->begin < end) {
            return true;
        }
    }
    return false;
}

bool bhi_hazards_add(struct bhi_hazards *hazards, struct bhi_vk_buffer *buffer, uint64_t begin,
                     uint64_t end, bool write) {
    /* A range that continues the last one of its kind extends it: many commands on slices of a
     * buffer stay one range. */
    uint32_t head = first(hazards, buffer);
    if (head != 0) {
        struct bhi_hazard_range *range = &hazards->ranges[head - 1];
        if (range->write == write && begin <= range->end && range->begin <= end) {
            range->begin = begin < range->begin ? begin : range->begin;
            range->end = end > range->end ? end : range->end;
            return true;
        }
    }
    if (!BHI_ARRAY_RESERVE(hazards->ranges, hazards->capacity, hazards->count + 1)) {
        return false;
    }
    hazards->ranges[hazards->count++] =
        (struct bhi_hazard_range){.begin = begin, .end = end, .next = head, .write = write};
    buffer->epoch = hazards->epoch;
    buffer->first_range = hazards->count;
    return true;
}
