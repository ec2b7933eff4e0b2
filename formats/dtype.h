/* The element types of buffers, push constants and specialization constants. */
#ifndef BHI_FORMATS_DTYPE_H
#define BHI_FORMATS_DTYPE_H

#include <bulkhead/array.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

#define BHI_DTYPE_NAMES "f16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool"

enum { BHI_DTYPE_COUNT = 12 };
/* The types that values are computed in and .npy files have, in the order of their names above. All
 * functions here are for these alone, but where they say so. */
extern const bh_dtype bhi_dtypes[BHI_DTYPE_COUNT];
/* Is it one of them? */
bool bhi_dtype_is_known(bh_dtype dtype);

const char *bhi_dtype_name(bh_dtype dtype);
uint32_t bhi_dtype_size(bh_dtype dtype);
const char *bhi_dtype_npy_code(bh_dtype dtype); /* "f4": without the byte order */

/* By name; |length| bytes of |name| count. */
bool bhi_dtype_find(const char *name, size_t length, bh_dtype *out_dtype);
/* By kind and size in a .npy: ('f', 4). */
bool bhi_dtype_find_npy(char kind, uint64_t bytes, bh_dtype *out_dtype);

/* Numbers as bh_description has them. */
bh_number_kind bhi_dtype_number(bh_dtype dtype);
bool bhi_dtype_find_number(bh_number_kind kind, uint32_t bits, bh_dtype *out_dtype);
/* Of any: "bf16", too. NULL: it is unknown, or BH_DTYPE_NONE. */
const char *bhi_dtype_any_name(bh_dtype dtype);

/* Parses one value: an integer (decimal, or hexadecimal after 0x), true, false, 1 or 0 of a bool,
 * or a floating-point number as strtod reads it, inf and nan too. Out of the type's range is
 * refused. *out_bits holds the value's bytes in little endian, zero-extended. */
bool bhi_dtype_parse(bh_dtype dtype, const char *text, uint64_t *out_bits,
                     struct bhi_complaint *complaint);

/* IEEE 754 binary16, round to nearest even; overflow gives infinity. */
uint16_t bhi_f16_from_double(double value);
double bhi_f16_to_double(uint16_t bits);

#endif
