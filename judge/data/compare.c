#include "judge/data/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/dtype.h"

/* -- elements -------------------------------------------------------------------------------- */

static uint64_t load(const uint8_t *elements, uint32_t size, uint64_t index) {
    uint64_t bits = 0;
    memcpy(&bits, elements + index * size, size); /* little endian */
    return bits;
}

static bool is_float(bh_dtype dtype) {
    return dtype == BH_DTYPE_F16 || dtype == BH_DTYPE_F32 || dtype == BH_DTYPE_F64;
}

static bool has_sign(bh_dtype dtype) {
    return dtype == BH_DTYPE_I8 || dtype == BH_DTYPE_I16 || dtype == BH_DTYPE_I32 ||
           dtype == BH_DTYPE_I64;
}

/* The value of a float; each type's numbers are a double's, too. */
static double real_of(bh_dtype dtype, uint64_t bits) {
    if (dtype == BH_DTYPE_F16) {
        return bhi_f16_to_double((uint16_t)bits);
    }
    if (dtype == BH_DTYPE_F32) {
        const uint32_t word = (uint32_t)bits;
        float single;
        memcpy(&single, &word, sizeof single);
        return single;
    }
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

static int64_t signed_of(bh_dtype dtype, uint64_t bits) {
    const uint32_t shift = 64 - 8 * bhi_dtype_size(dtype);
    return (int64_t)(bits << shift) >> shift;
}

static bool is_nan(bh_dtype dtype, uint64_t bits) {
    return is_float(dtype) && isnan(real_of(dtype, bits));
}

/* The numbers of a type in their order: the next number has the next integer. */
static __int128 order_of(bh_dtype dtype, uint64_t bits) {
    if (has_sign(dtype)) {
        return signed_of(dtype, bits);
    }
    if (!is_float(dtype)) {
        return bits;
    }
    const uint64_t sign = UINT64_C(1) << (8 * bhi_dtype_size(dtype) - 1);
    const __int128 magnitude = bits & (sign - 1);
    return bits & sign ? -magnitude : magnitude;
}

double bhi_element_value(bh_dtype dtype, uint64_t bits) {
    return is_float(dtype) ? real_of(dtype, bits) : (double)order_of(dtype, bits);
}

uint64_t bhi_ulp_between(bh_dtype dtype, uint64_t a, uint64_t b) {
    if (is_nan(dtype, a) || is_nan(dtype, b)) {
        return UINT64_MAX;
    }
    const __int128 distance = order_of(dtype, a) - order_of(dtype, b);
    return (uint64_t)(distance < 0 ? -distance : distance);
}

const char *bhi_element_text(bh_dtype dtype, uint64_t bits, char out[BHI_ELEMENT_TEXT]) {
    if (is_nan(dtype, bits)) {
        snprintf(out, BHI_ELEMENT_TEXT, "nan");
    } else if (is_float(dtype)) {
        const int digits = dtype == BH_DTYPE_F16 ? 5 : dtype == BH_DTYPE_F32 ? 9 : 17;
        snprintf(out, BHI_ELEMENT_TEXT, "%.*g", digits, real_of(dtype, bits));
    } else if (dtype == BH_DTYPE_BOOL && bits < 2) {
        snprintf(out, BHI_ELEMENT_TEXT, "%s", bits ? "true" : "false");
    } else if (has_sign(dtype)) {
        snprintf(out, BHI_ELEMENT_TEXT, "%" PRId64, signed_of(dtype, bits));
    } else {
        snprintf(out, BHI_ELEMENT_TEXT, "%" PRIu64, bits);
    }
    return out;
}

/* -- comparison ------------------------------------------------------------------------------ */

/* Neither is NaN. Of an infinity only the same infinity is near: every number is infinitely far
 * from it, and |absolute + relative * inf| must not take that for near. */
static bool is_near(bh_dtype dtype, uint64_t expected, uint64_t got,
                    const struct bhi_tolerance *tolerance) {
    if (!is_float(dtype)) {
        const __int128 a = order_of(dtype, expected), b = order_of(dtype, got);
        const double distance = (double)(a < b ? b - a : a - b);
        return distance <= tolerance->absolute + tolerance->relative * (double)(a < 0 ? -a : a);
    }
    const double a = real_of(dtype, expected), b = real_of(dtype, got);
    if (isinf(a) || isinf(b)) {
        return a == b;
    }
    return fabs(b - a) <= tolerance->absolute + tolerance->relative * fabs(a);
}

static bool is_right(bh_dtype dtype, uint64_t expected, uint64_t got,
                     const struct bhi_tolerance *tolerance) {
    const bool expects_nan = is_nan(dtype, expected);
    if (expects_nan && tolerance->nan == BHI_NAN_ANY) {
        return true;
    }
    if (expects_nan || is_nan(dtype, got)) {
        return expects_nan && tolerance->nan == BHI_NAN_EQUAL && is_nan(dtype, got);
    }
    switch (tolerance->kind) {
    case BHI_TOLERANCE_EXACT:
        return expected == got;
    case BHI_TOLERANCE_NEAR:
        return is_near(dtype, expected, got, tolerance);
    case BHI_TOLERANCE_ULP:
        return bhi_ulp_between(dtype, expected, got) <= tolerance->ulp;
    }
    return false;
}

void bhi_compare(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                 const struct bhi_tolerance *tolerance, struct bhi_difference *out) {
    const uint32_t size = bhi_dtype_size(dtype);
    *out = (struct bhi_difference){0};
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t a = load(expected, size, i), b = load(got, size, i);
        if (is_right(dtype, a, b, tolerance)) {
            continue;
        }
        if (out->wrong++ == 0) {
            out->index = i;
            out->ulp = bhi_ulp_between(dtype, a, b);
            bhi_element_text(dtype, a, out->expected);
            bhi_element_text(dtype, b, out->got);
        }
    }
}

bool bhi_find_nan(bh_dtype dtype, uint64_t count, const void *elements, uint64_t *out_index) {
    const uint32_t size = bhi_dtype_size(dtype);
    for (uint64_t i = 0; i < count && is_float(dtype); i++) {
        if (is_nan(dtype, load(elements, size, i))) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

bool bhi_is_finite(bh_dtype dtype, uint64_t count, const void *elements) {
    const uint32_t size = bhi_dtype_size(dtype);
    for (uint64_t i = 0; i < count && is_float(dtype); i++) {
        if (!isfinite(real_of(dtype, load(elements, size, i)))) {
            return false;
        }
    }
    return true;
}
