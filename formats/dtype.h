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
/* What arrays can have beside these. */
#define BHI_SMALL_FLOAT_NAMES "bf16 f8_e4m3 f8_e5m2"

enum { BHI_DTYPE_COUNT = 12, BHI_ELEMENT_COUNT = 15 };
/* The types that values and .npy files can have, in the order of the names above, and behind them
 * those that arrays alone have. Unless its comment says otherwise, a function below takes only
 * these types. */
extern const bh_dtype bhi_dtypes[BHI_ELEMENT_COUNT];
bool bhi_dtype_is_known(bh_dtype dtype); /* one of the first BHI_DTYPE_COUNT */

bool bhi_dtype_is_float(bh_dtype dtype);
bool bhi_dtype_is_signed(bh_dtype dtype);  /* an integer, i8 to i64 */
bool bhi_dtype_is_integer(bh_dtype dtype); /* not bool */

const char *bhi_dtype_name(bh_dtype dtype);
uint32_t bhi_dtype_size(bh_dtype dtype); /* also of one that is not in |bhi_dtypes| */
/* Such as "f4", without the byte order. .npy has no small floats: their bits are in it, "u2" or
 * "u1". ml_dtypes writes "V2" and "V1", which NumPy itself reads as bytes without arithmetic, and
 * which do not tell the 8-bit floats apart. */
const char *bhi_dtype_npy_code(bh_dtype dtype);

/* Finds one of the first BHI_DTYPE_COUNT types by its name, the first |length| bytes of |name|:
 * "f32", or NumPy's "float32". */
bool bhi_dtype_find(const char *name, size_t length, bh_dtype *out_dtype);
/* The same among all: also "bf16", "bfloat16", "f8_e4m3", "f8e4m3", "float8_e4m3fn" and the like. */
bool bhi_dtype_find_element(const char *name, size_t length, bh_dtype *out_dtype);
/* Finds any type by its name in a .safetensors file, such as "BF16". */
bool bhi_dtype_find_safetensors(const char *name, bh_dtype *out_dtype);
/* Writes that name of a type. */
enum { BHI_DTYPE_SAFETENSORS = 16 };
void bhi_dtype_safetensors_name(bh_dtype dtype, char out[BHI_DTYPE_SAFETENSORS]);
/* Finds a type by its kind and size in a .npy file, such as ('f', 4). */
bool bhi_dtype_find_npy(char kind, uint64_t bytes, bh_dtype *out_dtype);

/* The kind of number that bh_description uses for |dtype|: also for a type that is not in
 * |bhi_dtypes|. */
bh_number_kind bhi_dtype_number(bh_dtype dtype);
bool bhi_dtype_find_number(bh_number_kind kind, uint32_t bits, bh_dtype *out_dtype);
/* The name and the size of any type, also of one that is not in |bhi_dtypes|, such as "f8_e8m0".
 * NULL and 0: unknown, or BH_DTYPE_NONE. */
const char *bhi_dtype_any_name(bh_dtype dtype);
uint32_t bhi_dtype_any_size(bh_dtype dtype);

/* Parses one value: an integer (decimal, or hexadecimal after 0x); true, false, 1 or 0 for a bool;
 * or a floating-point number as strtod reads it, with inf and nan. Refuses a value outside the
 * type's range. *out_bits gets the value's bytes in little endian, zero-extended. */
bool bhi_dtype_parse(bh_dtype dtype, const char *text, uint64_t *out_bits,
                     struct bhi_complaint *complaint);

/* -- floats --------------------------------------------------------------------------------------
 * How a type of floats has its bits: a sign, an exponent, a mantissa. */
struct bhi_float {
    uint32_t exponent, mantissa; /* bits */
    uint64_t top;                /* the least that is no finite number: infinity, or NaN */
    uint64_t nan;
    double overflow; /* numbers below it are rounded to finite ones */
};
/* Not of BH_DTYPE_F8_E8M0. */
struct bhi_float bhi_float_of(bh_dtype dtype);

/* Overflow gives infinity. E4M3, which has none, gives NaN, as ml_dtypes and PyTorch do: a sum that
 * leaves the range is seen. Each |overflow| is halfway to the next number, if there were one; only
 * that of E4M3 rounds down, because 448 is even. */
static const struct bhi_float bhi_f16 = {5, 10, 0x7C00, 0x7E00, 0x1.FFEp15};
static const struct bhi_float bhi_bf16 = {8, 7, 0x7F80, 0x7FC0, 0x1.FFp127};
static const struct bhi_float bhi_f8_e4m3 = {4, 3, 0x7F, 0x7F, 0x1.D000000000001p8};
static const struct bhi_float bhi_f8_e5m2 = {5, 2, 0x7C, 0x7E, 0x1.Ep15};

/* These two are for the four above. Without branches, so that a loop can convert several numbers at
 * once: inlined, so that |f| is a constant there. */
#define BHI_FLOAT static inline __attribute__((always_inline))

/* Rounds to nearest even. */
BHI_FLOAT uint16_t bhi_float_from_double(struct bhi_float f, double value) {
    static const uint64_t sign = UINT64_C(1) << 63;
    const uint64_t least = (UINT64_C(1025) - (UINT64_C(1) << (f.exponent - 1))) << 52;
    const uint32_t shift = 52 - f.mantissa;
    uint64_t bits, sum_bits;
    double unit, magnitude;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t upper = bits >> 63 << (f.exponent + f.mantissa);
    bits &= ~sign;
    memcpy(&magnitude, &bits, sizeof magnitude);
    /* The power of two below it, but at least the smallest normal number: the numbers below that
     * are as far from each other as those above. */
    const uint64_t below = bits & UINT64_C(0x7FF0000000000000);
    const uint64_t scale = below < least ? least : below;
    /* Of the sum the addition keeps |mantissa| bits below |scale|, in its lowest bits. */
    const uint64_t unit_bits = scale + ((uint64_t)shift << 52);
    memcpy(&unit, &unit_bits, sizeof unit);
    const double sum = unit + magnitude;
    memcpy(&sum_bits, &sum, sizeof sum_bits);
    const uint64_t rounded = ((scale - least) >> shift) + (sum_bits - unit_bits);
    const uint64_t finite = magnitude < f.overflow ? rounded : f.top;
    return (uint16_t)(upper | (magnitude != magnitude ? f.nan : finite));
}

BHI_FLOAT double bhi_float_to_double(struct bhi_float f, uint64_t bits) {
    const uint32_t width = f.exponent + f.mantissa;
    const uint64_t magnitude = bits & ((UINT64_C(1) << width) - 1), sign = bits >> width << 63;
    /* The exponents' biases differ; that of infinity and NaN is all ones. */
    const uint64_t bias = 1024 - (UINT64_C(1) << (f.exponent - 1));
    const uint64_t unit = (bias + 1 - f.mantissa) << 52; /* of the smallest denormal number */
    const uint64_t infinite = magnitude >= f.top ? UINT64_C(0x7FF) << 52 : 0;
    const uint64_t normal = ((magnitude + (bias << f.mantissa)) << (52 - f.mantissa)) | infinite;
    uint64_t out;
    double smallest, real;
    memcpy(&smallest, &unit, sizeof smallest);
    const double denormal = (double)(int32_t)magnitude * smallest;
    memcpy(&out, &denormal, sizeof out);
    out = (magnitude >> f.mantissa ? normal : out) | sign;
    memcpy(&real, &out, sizeof real);
    return real;
}

/* As the generators of inputs have it: what E4M3 does not hold becomes the nearest that it holds. */
BHI_FLOAT uint16_t bhi_f8_e4m3_nearest(double value) {
    static const double most = 448;
    const double above = value < -most ? -most : value;
    return bhi_float_from_double(bhi_f8_e4m3, above > most ? most : above);
}

/* The value of an element, and the element nearest to a value: of any float in |bhi_dtypes|. */
double bhi_dtype_to_double(bh_dtype dtype, uint64_t bits);
uint64_t bhi_dtype_from_double(bh_dtype dtype, double value);

BHI_FLOAT uint16_t bhi_f16_from_double(double value) {
    return bhi_float_from_double(bhi_f16, value);
}

BHI_FLOAT double bhi_f16_to_double(uint16_t bits) {
    return bhi_float_to_double(bhi_f16, bits);
}

#endif
