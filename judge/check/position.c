#include "judge/check/position.h"
#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void bhi_position_of(const struct bhi_array *form, uint64_t index, uint64_t out_along[]) {
    for (uint32_t i = form->dimensions; i-- > 0;) {
        out_along[i] = index % form->shape[i];
        index /= form->shape[i];
    }
}

const char *bhi_position_text(const char *place, const struct bhi_array *form, uint64_t index,
                              char out[BHI_POSITION_TEXT]) {
    uint64_t along[BHI_MAX_DIMENSIONS];
    bhi_position_of(form, index, along);
    size_t used = (size_t)bhi_format(out, BHI_POSITION_TEXT, "%.60s[", place);
    for (uint32_t i = 0; i < form->dimensions && used < BHI_POSITION_TEXT; i++) {
        used += (size_t)bhi_format(out + used, BHI_POSITION_TEXT - used, "%s%" PRIu64, i ? "," : "",
                                   along[i]);
    }
    if (used < BHI_POSITION_TEXT) {
        snprintf(out + used, BHI_POSITION_TEXT - used, "]");
    }
    return out;
}
