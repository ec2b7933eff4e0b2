#include "judge/data/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "formats/dtype.h"

/* The key that sorts as the number does: NaNs at the ends. */
static uint64_t key_of(bh_dtype dtype, uint64_t bits, bool back) {
    const uint64_t sign = UINT64_C(1) << (8 * bhi_dtype_size(dtype) - 1);
    if (bhi_dtype_number(dtype) == BH_NUMBER_INT) {
        return bits ^ sign;
    }
    if (bhi_dtype_number(dtype) != BH_NUMBER_FLOAT) {
        return bits;
    }
    const bool negative = back ? !(bits & sign) : bits & sign;
    return negative ? ~bits & (sign | (sign - 1)) : bits ^ sign;
}

bool bhi_sort(bh_dtype dtype, bool reversed, uint64_t count, void *elements) {
    uint8_t *const out = elements;
    const uint32_t size = bhi_dtype_size(dtype);
    uint64_t *keys = calloc(count, sizeof *keys);
    for (uint64_t i = 0; i < count && keys; i++) {
        memcpy(&keys[i], out + i * size, size);
        keys[i] = key_of(dtype, keys[i], false);
    }
    if (keys) {
        qsort(keys, count, sizeof *keys, bhi_compare_u64);
    }
    for (uint64_t i = 0; i < count && keys; i++) {
        const uint64_t bits = key_of(dtype, keys[reversed ? count - 1 - i : i], true);
        memcpy(out + i * size, &bits, size);
    }
    free(keys);
    return keys;
}
