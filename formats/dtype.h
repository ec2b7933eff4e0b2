/* The element types of buffers, push constants and specialization constants. */
#ifndef BHI_FORMATS_DTYPE_H
#define BHI_FORMATS_DTYPE_H

#include <bulkhead/array.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/complaint.h"

#define BHI_DTYPE_NAMES "f16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool"

enum { BHI_DTYPE_COUNT = 12 };
/* The types that values and .npy files can have, in the order of the names above. Unless its
 * comment says otherwise, a function below takes only these types. */
extern const bh_dtype bhi_dtypes[BHI_DTYPE_COUNT];
bool bhi_dtype_is_known(bh_dtype dtype);

const char *bhi_dtype_name(bh_dtype dtype);
uint32_t bhi_dtype_size(bh_dtype dtype);        /* also of one that is not in |bhi_dtypes| */
const char *bhi_dtype_npy_code(bh_dtype dtype); /* such as "f4", without the byte order */

/* Finds a type by its name, the first |length| bytes of |name|. */
bool bhi_dtype_find(const char *name, size_t length, bh_dtype *out_dtype);
/* Finds any type by its name in a .safetensors file, such as "BF16". */
bool bhi_dtype_find_safetensors(const char *name, bh_dtype *out_dtype);
/* Finds a type by its kind and size in a .npy file, such as ('f', 4). */
bool bhi_dtype_find_npy(char kind, uint64_t bytes, bh_dtype *out_dtype);

/* The kind of number that bh_description uses for |dtype|: also for a type that is not in
 * |bhi_dtypes|. */
bh_number_kind bhi_dtype_number(bh_dtype dtype);
bool bhi_dtype_find_number(bh_number_kind kind, uint32_t bits, bh_dtype *out_dtype);
/* The name and the size of any type, also of one that is not in |bhi_dtypes|, such as "bf16". NULL
 * and 0: unknown, or BH_DTYPE_NONE. */
const char *bhi_dtype_any_name(bh_dtype dtype);
uint32_t bhi_dtype_any_size(bh_dtype dtype);

/* Parses one value: an integer (decimal, or hexadecimal after 0x); true, false, 1 or 0 for a bool;
 * or a floating-point number as strtod reads it, with inf and nan. Refuses a value outside the
 * type's range. *out_bits gets the value's bytes in little endian, zero-extended. */
bool bhi_dtype_parse(bh_dtype dtype, const char *text, uint64_t *out_bits,
                     struct bhi_complaint *complaint);

/* IEEE 754 binary16. Without branches, so that a loop can convert several numbers at once. */

/* Rounds to nearest even; overflow gives infinity. */
static inline uint16_t bhi_f16_from_double(double value) {
    static const uint64_t least = (uint64_t)(1023 - 14) << 52, sign = UINT64_C(1) << 63;
    uint64_t bits, sum_bits;
    double unit, magnitude;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t upper = (uint16_t)(bits >> 48 & 0x8000);
    bits &= ~sign;
    memcpy(&magnitude, &bits, sizeof magnitude);
    /* The power of two below it, but at least 2^-14: the numbers below that are as far from each
     * other as those above. */
    const uint64_t below = bits & UINT64_C(0x7FF0000000000000);
    const uint64_t scale = below < least ? least : below;
    /* Of the sum the addition keeps 10 bits below |scale|, in its lowest bits. */
    const uint64_t unit_bits = scale + (UINT64_C(42) << 52);
    memcpy(&unit, &unit_bits, sizeof unit);
    const double sum = unit + magnitude;
    memcpy(&sum_bits, &sum, sizeof sum_bits);
    const uint64_t rounded = ((scale - least) >> 42) + (sum_bits - unit_bits);
    const uint16_t finite =
        magnitude < 65520 ? (uint16_t)rounded : 0x7C00; /* 65504 is the largest */
    return upper | (magnitude != magnitude ? 0x7E00 : finite);
}

static inline double bhi_f16_to_double(uint16_t bits) {
    const uint64_t magnitude = bits & 0x7FFF, sign = (uint64_t)(bits >> 15) << 63;
    const double denormal = (double)(int32_t)magnitude * 0x1p-24;
    /* The exponent's bias is 15 there and 1023 here; that of infinity and NaN is all ones. */
    const uint64_t infinite = magnitude >= 0x7C00 ? UINT64_C(0x7FF) << 52 : 0;
    const uint64_t normal = ((magnitude + ((1023 - 15) << 10)) << 42) | infinite;
    uint64_t out;
    double real;
    memcpy(&out, &denormal, sizeof out);
    out = (magnitude < 0x400 ? out : normal) | sign;
    memcpy(&real, &out, sizeof real);
    return real;
}

#endif
