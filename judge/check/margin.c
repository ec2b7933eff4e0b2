#include "judge/check/margin.h"

#include <string.h>

void bhi_margins_fill(struct bhi_margins *margins, struct bhi_filler_place place, void *buffer,
                      uint64_t size) {
    uint8_t *bytes = buffer;
    bhi_filler_noise(place, bytes, size + 2 * BHI_MARGIN);
    memcpy(margins->before, bytes, BHI_MARGIN);
    memcpy(margins->behind, bytes + BHI_MARGIN + size, BHI_MARGIN);
}

bool bhi_margins_find(const struct bhi_margins *margins, const void *buffer, uint64_t size,
                      int64_t *out_offset) {
    const uint8_t *before = buffer, *behind = before + BHI_MARGIN + size;
    for (int i = 0; i < BHI_MARGIN; i++) {
        if (before[i] != margins->before[i]) {
            *out_offset = i - BHI_MARGIN;
            return true;
        }
    }
    for (int i = 0; i < BHI_MARGIN; i++) {
        if (behind[i] != margins->behind[i]) {
            *out_offset = (int64_t)size + i;
            return true;
        }
    }
    return false;
}
