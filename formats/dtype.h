/* The element types of buffers, push constants and specialization constants. */
#ifndef BHI_FORMATS_DTYPE_H
#define BHI_FORMATS_DTYPE_H

#include <bulkhead/array.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

/* BHI_DTYPE(NAME, bytes, kind, .npy code) */
#define BHI_DTYPES                                                                                 \
    BHI_DTYPE(f16, 2, 'f', "f2")                                                                   \
    BHI_DTYPE(f32, 4, 'f', "f4")                                                                   \
    BHI_DTYPE(f64, 8, 'f', "f8")                                                                   \
    BHI_DTYPE(i8, 1, 'i', "i1")                                                                    \
    BHI_DTYPE(u8, 1, 'u', "u1")                                                                    \
    BHI_DTYPE(i16, 2, 'i', "i2")                                                                   \
    BHI_DTYPE(u16, 2, 'u', "u2")                                                                   \
    BHI_DTYPE(i32, 4, 'i', "i4")                                                                   \
    BHI_DTYPE(u32, 4, 'u', "u4")                                                                   \
    BHI_DTYPE(i64, 8, 'i', "i8")                                                                   \
    BHI_DTYPE(u64, 8, 'u', "u8")                                                                   \
    BHI_DTYPE(bool, 1, 'b', "b1")

#define BHI_DTYPE_NAMES "f16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool"

enum bhi_dtype {
#define BHI_DTYPE(name, bytes, kind, code) BHI_DTYPE_##name,
    BHI_DTYPES
#undef BHI_DTYPE
        BHI_DTYPE_COUNT
};

const char *bhi_dtype_name(enum bhi_dtype dtype);
uint32_t bhi_dtype_size(enum bhi_dtype dtype);
const char *bhi_dtype_npy_code(enum bhi_dtype dtype); /* "f4": without the byte order */

/* By name; |length| bytes of |name| count. */
bool bhi_dtype_find(const char *name, size_t length, enum bhi_dtype *out_dtype);
/* By kind and size in a .npy: ('f', 4). */
bool bhi_dtype_find_npy(char kind, uint64_t bytes, enum bhi_dtype *out_dtype);

/* What the API calls it. */
bh_dtype bhi_dtype_public(enum bhi_dtype dtype);
/* False: it is none of these. */
bool bhi_dtype_from_public(bh_dtype dtype, enum bhi_dtype *out_dtype);
/* "bf16"; NULL: it is unknown, or BH_DTYPE_NONE. */
const char *bhi_dtype_public_name(bh_dtype dtype);

/* Parses one value: an integer (decimal, or hexadecimal after 0x), true, false, 1 or 0 of a bool,
 * or a floating-point number as strtod reads it, inf and nan too. Out of the type's range is
 * refused. *out_bits holds the value's bytes in little endian, zero-extended. */
bool bhi_dtype_parse(enum bhi_dtype dtype, const char *text, uint64_t *out_bits,
                     struct bhi_complaint *complaint);

/* IEEE 754 binary16, round to nearest even; overflow gives infinity. */
uint16_t bhi_f16_from_double(double value);
double bhi_f16_to_double(uint16_t bits);

#endif
