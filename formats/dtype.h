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

/* IEEE 754 binary16, round to nearest even; overflow gives infinity. */
uint16_t bhi_f16_from_double(double value);
double bhi_f16_to_double(uint16_t bits);

#endif
