#include "judge/data/whole.h"

#include <math.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/data/sort.h"

static uint64_t load(bh_dtype dtype, const void *elements, uint64_t index) {
    const uint32_t size = bhi_dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, (const uint8_t *)elements + index * size, size); /* little endian */
    return bits;
}

static void tell(bh_dtype dtype, uint64_t expected, uint64_t got, struct bhi_difference *out) {
    out->ulp = bhi_ulp_between(dtype, expected, got);
    bhi_element_text(dtype, expected, out->expected);
    bhi_element_text(dtype, got, out->got);
}

/* -- in any order ---------------------------------------------------------------------------- */

void bhi_sort_multiset(bh_dtype dtype, uint64_t count, void *elements) {
    const uint32_t size = bhi_dtype_size(dtype);
    const uint64_t all = UINT64_MAX >> (64 - 8 * size),
                   nan = all >> 1; /* the greatest of its sign */
    for (uint64_t i = 0; i < count; i++) {
        if (isnan(bhi_element_value(dtype, load(dtype, elements, i)))) {
            memcpy((uint8_t *)elements + i * size, &nan, size);
        }
    }
    bhi_sort(dtype, false, count, elements);
}

/* Is the first one sorted ahead of the second? They are no partners. */
static bool is_ahead(bh_dtype dtype, uint64_t a, uint64_t b) {
    const double x = bhi_element_value(dtype, a), y = bhi_element_value(dtype, b);
    const bool is_float = bhi_dtype_is_float(dtype);
    if (isnan(x) || isnan(y)) {
        return isnan(y);
    }
    if (is_float && x == y) {
        return signbit(x); /* -0 and 0 */
    }
    if (is_float) {
        return x < y;
    }
    return bhi_dtype_is_signed(dtype) ? (int64_t)(a << (64 - 8 * bhi_dtype_size(dtype))) <
                                            (int64_t)(b << (64 - 8 * bhi_dtype_size(dtype)))
                                      : a < b;
}

/* What is right for an element reaches up as far as that for the next one, or farther. So the least that
 * has come is a partner of the least that is expected, if of any. */
static void compare_sorted(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                           const struct bhi_tolerance *tolerance, struct bhi_difference *out) {
    uint64_t missing = 0, strays = 0, least_missing = 0;
    for (uint64_t i = 0, k = 0; i < count || k < count;) {
        const uint64_t a = i < count ? load(dtype, expected, i) : 0;
        const uint64_t b = k < count ? load(dtype, got, k) : 0;
        if (i < count && k < count && bhi_is_right(dtype, a, b, tolerance)) {
            i++, k++;
        } else if (k == count || (i < count && is_ahead(dtype, a, b))) {
            least_missing = missing++ ? least_missing : i;
            i++;
        } else {
            out->index = strays++ ? out->index : k;
            k++;
        }
    }
    out->wrong = strays;
    if (strays) {
        tell(dtype, load(dtype, expected, least_missing), load(dtype, got, out->index), out);
    }
}

/* -- by a norm ------------------------------------------------------------------------------- */

static void compare_norm(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                         const struct bhi_tolerance *tolerance, struct bhi_difference *out) {
    static const struct bhi_tolerance same = {.kind = BHI_TOLERANCE_EXACT, .nan = BHI_NAN_EQUAL};
    long double error = 0, norm = 0; /* no square of a double is too large for it */
    double farthest = -1;
    bool odd = false; /* an infinity or a NaN is not what was expected */
    for (uint64_t i = 0; i < count && !odd; i++) {
        const uint64_t a = load(dtype, expected, i), b = load(dtype, got, i);
        const double x = bhi_element_value(dtype, a), y = bhi_element_value(dtype, b);
        if (isnan(x) && tolerance->nan == BHI_NAN_ANY) {
            continue;
        }
        odd = (!isfinite(x) || !isfinite(y)) && !bhi_is_right(dtype, a, b, &same);
        if (isfinite(x) && isfinite(y)) {
            norm += (long double)x * x;
            error += ((long double)y - x) * ((long double)y - x);
        }
        if (odd || fabs(y - x) > farthest) {
            farthest = fabs(y - x);
            out->index = i;
        }
    }
    out->error = odd ? INFINITY : error > 0 ? (double)sqrtl(error / norm) : 0;
    if (out->error > tolerance->relative) {
        out->wrong = count;
        tell(dtype, load(dtype, expected, out->index), load(dtype, got, out->index), out);
    }
}

void bhi_compare_whole(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                       const struct bhi_tolerance *tolerance, struct bhi_difference *out) {
    *out = (struct bhi_difference){0};
    switch (tolerance->by) {
    case BHI_BY_ELEMENTS:
        bhi_compare(dtype, count, expected, got, tolerance, out);
        break;
    case BHI_BY_MULTISET:
        compare_sorted(dtype, count, expected, got, tolerance, out);
        break;
    case BHI_BY_NORM:
        compare_norm(dtype, count, expected, got, tolerance, out);
        break;
    case BHI_BY_CHECK:
        break;
    }
}
