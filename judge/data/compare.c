#include "judge/data/compare.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/data/wide.h"

/* -- elements -------------------------------------------------------------------------------- */

static uint64_t load(const uint8_t *elements, uint32_t size, uint64_t index) {
    uint64_t bits = 0;
    memcpy(&bits, elements + index * size, size); /* little endian */
    return bits;
}

static int64_t signed_of(bh_dtype dtype, uint64_t bits) {
    const uint32_t shift = 64 - 8 * bhi_dtype_size(dtype);
    return (int64_t)(bits << shift) >> shift;
}

static bool is_nan(bh_dtype dtype, uint64_t bits) {
    return bhi_dtype_is_float(dtype) && isnan(bhi_dtype_to_double(dtype, bits));
}

/* The numbers of a type in their order: the next number has the next integer. */
static __int128 order_of(bh_dtype dtype, uint64_t bits) {
    if (bhi_dtype_is_signed(dtype)) {
        return signed_of(dtype, bits);
    }
    if (!bhi_dtype_is_float(dtype)) {
        return bits;
    }
    const uint64_t sign = UINT64_C(1) << (8 * bhi_dtype_size(dtype) - 1);
    const __int128 magnitude = bits & (sign - 1);
    return bits & sign ? -magnitude : magnitude;
}

double bhi_element_value(bh_dtype dtype, uint64_t bits) {
    return bhi_dtype_is_float(dtype) ? bhi_dtype_to_double(dtype, bits)
                                     : (double)order_of(dtype, bits);
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
    } else if (bhi_dtype_is_float(dtype)) {
        /* So many that each number has its own. */
        const int digits = 2 + (int)((bhi_float_of(dtype).mantissa + 1) * 0.30103);
        snprintf(out, BHI_ELEMENT_TEXT, "%.*g", digits, bhi_dtype_to_double(dtype, bits));
    } else if (dtype == BH_DTYPE_BOOL && bits < 2) {
        snprintf(out, BHI_ELEMENT_TEXT, "%s", bits ? "true" : "false");
    } else if (bhi_dtype_is_signed(dtype)) {
        snprintf(out, BHI_ELEMENT_TEXT, "%" PRId64, signed_of(dtype, bits));
    } else {
        snprintf(out, BHI_ELEMENT_TEXT, "%" PRIu64, bits);
    }
    return out;
}

/* -- comparison ------------------------------------------------------------------------------ */

BHI_PART bool is_close(double expected, double got, double absolute, double relative) {
    return fabs(got - expected) <= absolute + relative * fabs(expected);
}

/* Neither is NaN. Of an infinity only the same infinity is near: every number is infinitely far
 * from it, and |absolute + relative * inf| must not take that for near. */
static bool is_near(bh_dtype dtype, uint64_t expected, uint64_t got,
                    const struct bhi_tolerance *tolerance) {
    if (!bhi_dtype_is_float(dtype)) {
        const __int128 a = order_of(dtype, expected), b = order_of(dtype, got);
        const double distance = (double)(a < b ? b - a : a - b);
        return distance <= tolerance->absolute + tolerance->relative * (double)(a < 0 ? -a : a);
    }
    const double a = bhi_dtype_to_double(dtype, expected), b = bhi_dtype_to_double(dtype, got);
    if (isinf(a) || isinf(b)) {
        return a == b;
    }
    return is_close(a, b, tolerance->absolute, tolerance->relative);
}

bool bhi_is_right(bh_dtype dtype, uint64_t expected, uint64_t got,
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

/* -- blocks ----------------------------------------------------------------------------------
 * Most blocks are right, which a loop without branches sees for several elements at once. Only
 * where it is not sure each element is looked at.
 */

enum { BLOCK = 512 };

/* Elements of a block, of any type: a copy, so that they are aligned. */
union elements {
    uint8_t bytes[BLOCK * sizeof(uint64_t)];
    uint8_t u8[BLOCK];
    int8_t i8[BLOCK];
    uint16_t u16[BLOCK];
    int16_t i16[BLOCK];
    uint32_t u32[BLOCK];
    int32_t i32[BLOCK];
    uint64_t u64[BLOCK];
    float f32[BLOCK];
    double f64[BLOCK];
};

#define EACH(out, of)                                                                              \
    for (uint32_t i = 0; i < BLOCK; i++) {                                                         \
        (out)[i] = of;                                                                             \
    }                                                                                              \
    return true

/* The values, which are exact. Returns false of integers of 64 bits. */
BHI_PART bool load_reals(bh_dtype dtype, const union elements *of, double out[BLOCK]) {
    switch (dtype) {
    case BH_DTYPE_F16:
        EACH(out, bhi_f16_to_double(of->u16[i]));
    case BH_DTYPE_BF16:
        EACH(out, bhi_float_to_double(bhi_bf16, of->u16[i]));
    case BH_DTYPE_F8_E4M3:
        EACH(out, bhi_float_to_double(bhi_f8_e4m3, of->u8[i]));
    case BH_DTYPE_F8_E5M2:
        EACH(out, bhi_float_to_double(bhi_f8_e5m2, of->u8[i]));
    case BH_DTYPE_F32:
        EACH(out, of->f32[i]);
    case BH_DTYPE_F64:
        EACH(out, of->f64[i]);
    case BH_DTYPE_I8:
        EACH(out, of->i8[i]);
    case BH_DTYPE_I16:
        EACH(out, of->i16[i]);
    case BH_DTYPE_I32:
        EACH(out, of->i32[i]);
    case BH_DTYPE_U16:
        EACH(out, of->u16[i]);
    case BH_DTYPE_U32:
        EACH(out, of->u32[i]);
    case BH_DTYPE_I64:
    case BH_DTYPE_U64:
        return false;
    default:
        EACH(out, of->u8[i]);
    }
}

/* A float's bits without the sign, or what is as far below zero. */
BHI_PART int64_t signed_magnitude(uint64_t bits, uint64_t sign) {
    const int64_t magnitude = (int64_t)(bits & (sign - 1));
    return bits & sign ? -magnitude : magnitude;
}

/* What order_of says, but of u64 less 2^63. Not of NaN. */
BHI_PART bool load_orders(bh_dtype dtype, const union elements *of, int64_t out[BLOCK]) {
    switch (dtype) {
    case BH_DTYPE_F8_E4M3:
    case BH_DTYPE_F8_E5M2:
        EACH(out, signed_magnitude(of->u8[i], 1u << 7));
    case BH_DTYPE_F16:
    case BH_DTYPE_BF16:
        EACH(out, signed_magnitude(of->u16[i], 1u << 15));
    case BH_DTYPE_F32:
        EACH(out, signed_magnitude(of->u32[i], 1u << 31));
    case BH_DTYPE_F64:
        EACH(out, signed_magnitude(of->u64[i], UINT64_C(1) << 63));
    case BH_DTYPE_I8:
        EACH(out, (int)of->i8[i]);
    case BH_DTYPE_I16:
        EACH(out, of->i16[i]);
    case BH_DTYPE_I32:
        EACH(out, of->i32[i]);
    case BH_DTYPE_I64:
        EACH(out, (int64_t)of->u64[i]);
    case BH_DTYPE_U16:
        EACH(out, of->u16[i]);
    case BH_DTYPE_U32:
        EACH(out, of->u32[i]);
    case BH_DTYPE_U64:
        EACH(out, (int64_t)(of->u64[i] ^ UINT64_C(1) << 63));
    default:
        EACH(out, of->u8[i]);
    }
}

/* Is every element surely near? Not of NaN and infinities. */
BHI_PART bool are_near(const double expected[BLOCK], const double got[BLOCK],
                       const struct bhi_tolerance *tolerance) {
    const double absolute = tolerance->absolute, relative = tolerance->relative;
    uint64_t unsure = 0;
    for (uint32_t i = 0; i < BLOCK; i++) {
        const double a = expected[i], b = got[i];
        const bool finite = (fabs(a) <= DBL_MAX) & (fabs(b) <= DBL_MAX);
        unsure |= (finite & is_close(a, b, absolute, relative)) ? 0 : 1;
    }
    return !unsure;
}

BHI_PART bool are_within(const int64_t expected[BLOCK], const int64_t got[BLOCK], uint64_t ulp) {
    uint64_t unsure = 0;
    for (uint32_t i = 0; i < BLOCK; i++) {
        const uint64_t a = (uint64_t)expected[i], b = (uint64_t)got[i];
        const uint64_t distance = expected[i] < got[i] ? b - a : a - b;
        unsure |= distance > ulp ? 1 : 0;
    }
    return !unsure;
}

/* Of floats: is one NaN? */
BHI_PART bool have_nan(bh_dtype dtype, const union elements *of) {
    double reals[BLOCK];
    uint64_t found = 0;
    if (bhi_dtype_is_float(dtype) && load_reals(dtype, of, reals)) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            found |= reals[i] != reals[i] ? 1 : 0;
        }
    }
    return found;
}

/* Is every element surely right? */
BHI_PART bool are_right(bh_dtype dtype, const union elements *expected, const union elements *got,
                        const struct bhi_tolerance *tolerance) {
    double a[BLOCK], b[BLOCK];
    int64_t m[BLOCK], n[BLOCK];
    switch (tolerance->kind) {
    case BHI_TOLERANCE_NEAR:
        return load_reals(dtype, expected, a) && load_reals(dtype, got, b) &&
               are_near(a, b, tolerance);
    case BHI_TOLERANCE_ULP:
        return !have_nan(dtype, expected) && !have_nan(dtype, got) &&
               load_orders(dtype, expected, m) && load_orders(dtype, got, n) &&
               are_within(m, n, tolerance->ulp);
    default:
        return !memcmp(expected, got, BLOCK * bhi_dtype_size(dtype)) && !have_nan(dtype, expected);
    }
}

static bool are_right_plainly(bh_dtype dtype, const union elements *expected,
                              const union elements *got, const struct bhi_tolerance *tolerance) {
    return are_right(dtype, expected, got, tolerance);
}

BHI_WIDE static bool are_right_widely(bh_dtype dtype, const union elements *expected,
                                      const union elements *got,
                                      const struct bhi_tolerance *tolerance) {
    return are_right(dtype, expected, got, tolerance);
}

/* Copies the elements of a block from |begin| on; behind the last are zeros. Returns how many there
 * are. */
static uint32_t load_block(uint32_t size, uint64_t count, const void *elements, uint64_t begin,
                           union elements *out) {
    const uint32_t here = count - begin < BLOCK ? (uint32_t)(count - begin) : BLOCK;
    memcpy(out, (const uint8_t *)elements + begin * size, here * size);
    memset(out->bytes + here * size, 0, (BLOCK - here) * size);
    return here;
}

static void compare_block(bh_dtype dtype, uint64_t begin, uint32_t count,
                          const union elements *expected, const union elements *got,
                          const struct bhi_tolerance *tolerance, struct bhi_difference *out) {
    const uint32_t size = bhi_dtype_size(dtype);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t a = load(expected->bytes, size, i), b = load(got->bytes, size, i);
        if (bhi_is_right(dtype, a, b, tolerance)) {
            continue;
        }
        if (out->wrong++ == 0) {
            out->index = begin + i;
            out->ulp = bhi_ulp_between(dtype, a, b);
            bhi_element_text(dtype, a, out->expected);
            bhi_element_text(dtype, b, out->got);
        }
    }
}

void bhi_compare(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                 const struct bhi_tolerance *tolerance, struct bhi_difference *out) {
    const uint32_t size = bhi_dtype_size(dtype);
    bool (*const sure)(bh_dtype, const union elements *, const union elements *,
                       const struct bhi_tolerance *) =
        bhi_is_wide() ? are_right_widely : are_right_plainly;
    union elements a, b;
    *out = (struct bhi_difference){0};
    for (uint64_t i = 0; i < count; i += BLOCK) {
        const uint32_t here = load_block(size, count, expected, i, &a);
        (void)load_block(size, count, got, i, &b);
        if (!sure(dtype, &a, &b, tolerance)) {
            compare_block(dtype, i, here, &a, &b, tolerance, out);
        }
    }
}

bool bhi_find_nan(bh_dtype dtype, uint64_t count, const void *elements, uint64_t *out_index) {
    const uint32_t size = bhi_dtype_size(dtype);
    union elements block;
    for (uint64_t i = 0; i < count && bhi_dtype_is_float(dtype); i += BLOCK) {
        (void)load_block(size, count, elements, i, &block);
        if (!have_nan(dtype, &block)) {
            continue;
        }
        while (!is_nan(dtype, load(elements, size, i))) {
            i++;
        }
        *out_index = i;
        return true;
    }
    return false;
}

bool bhi_is_finite(bh_dtype dtype, uint64_t count, const void *elements) {
    const uint32_t size = bhi_dtype_size(dtype);
    for (uint64_t i = 0; i < count && bhi_dtype_is_float(dtype); i++) {
        if (!isfinite(bhi_dtype_to_double(dtype, load(elements, size, i)))) {
            return false;
        }
    }
    return true;
}
