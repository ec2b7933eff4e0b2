#include "templates/constants.h"

#include <stdio.h>
#include <string.h>

void bhi_constants_put_axes(const struct bhi_axes *axes, uint32_t *words) {
    for (uint32_t k = 1; k < axes->count; k++) {
        const uint64_t size = axes->size[k];
        uint64_t power = 2; /* the first that is not below the size, which is at least 2 */
        while (power < size) {
            power *= 2;
        }
        words[bhi_constants_axis(k)] = (uint32_t)size;
        words[bhi_constants_axis(k) + 1] = (uint32_t)(((power - size) << 32) / size + 1);
    }
}

uint32_t bhi_constant_words(bh_dtype dtype) {
    return bhi_dtype_size(dtype) == 8 ? 2 : 1;
}

void bhi_constant_put(bh_dtype dtype, uint64_t bits, uint32_t out_words[2]) {
    const uint32_t size = 8 * bhi_dtype_size(dtype);
    uint64_t value = size == 64 ? bits : bits & ((UINT64_C(1) << size) - 1);
    if (dtype == BH_DTYPE_F16) {
        const float wide = (float)bhi_f16_to_double((uint16_t)value);
        memcpy(out_words, &wide, sizeof wide);
        return;
    }
    if (dtype == BH_DTYPE_BOOL) {
        value = value != 0;
    }
    if ((dtype == BH_DTYPE_I8 || dtype == BH_DTYPE_I16) && value >> (size - 1)) {
        value |= UINT32_MAX << size;
    }
    out_words[0] = (uint32_t)value;
    if (size == 64) {
        out_words[1] = (uint32_t)(value >> 32);
    }
}

bool bhi_constants_add(struct bhi_constants *push, bh_dtype dtype, uint64_t bits) {
    if (push->count + bhi_constant_words(dtype) > BHI_PUSH_WORDS) {
        return false;
    }
    bhi_constant_put(dtype, bits, &push->words[push->count]);
    push->count += bhi_constant_words(dtype);
    return true;
}

const char *bhi_constant_text(bh_dtype dtype, const char *type, uint32_t word,
                              const uint32_t *written, char out[BHI_CONSTANT_TEXT]) {
    char at[2][24];
    for (uint32_t i = 0; i < bhi_constant_words(dtype); i++) {
        snprintf(at[i], sizeof at[i], written ? "0x%xu" : "bh_push[%u]",
                 written ? written[i] : word + i);
    }
    switch (dtype) {
    case BH_DTYPE_F16:
    case BH_DTYPE_F32:
        snprintf(out, BHI_CONSTANT_TEXT, "%s(uintBitsToFloat(%s))", type, at[0]);
        break;
    case BH_DTYPE_F64:
        snprintf(out, BHI_CONSTANT_TEXT, "packDouble2x32(uvec2(%s, %s))", at[0], at[1]);
        break;
    case BH_DTYPE_I64:
    case BH_DTYPE_U64:
        snprintf(out, BHI_CONSTANT_TEXT, "%s(uint64_t(%s) | uint64_t(%s) << 32)", type, at[0],
                 at[1]);
        break;
    case BH_DTYPE_BOOL:
        snprintf(out, BHI_CONSTANT_TEXT, "%s != 0u", at[0]);
        break;
    default:
        snprintf(out, BHI_CONSTANT_TEXT, "%s(int(%s))", type, at[0]);
    }
    return out;
}
