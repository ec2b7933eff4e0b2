/* Types of elements: what NumPy, the buffer protocol and DLPack call them. The buffer protocol has
 * no format for bfloat16 and 8-bit floats: it shows them as integers of their size. For NumPy they
 * are raw bytes, as the package ml_dtypes has them. */
#include "python/native.h"

#include <string.h>

enum {
    INT = 0,
    UINT = 1,
    FLOAT = 2,
    BFLOAT = 4,
    BOOL = 6,
    F8_E4M3 = 10,
    F8_E5M2 = 12,
    F8_E8M0 = 14
};

const struct bhi_py_dtype bhi_py_dtypes[BHI_PY_DTYPES] = {
    [BH_DTYPE_NONE] = {"raw", "raw", "B", "|u1", 1, UINT, 8},
    [BH_DTYPE_F16] = {"float16", "f16", "e", "<f2", 2, FLOAT, 16},
    [BH_DTYPE_F32] = {"float32", "f32", "f", "<f4", 4, FLOAT, 32},
    [BH_DTYPE_F64] = {"float64", "f64", "d", "<f8", 8, FLOAT, 64},
    [BH_DTYPE_I8] = {"int8", "i8", "b", "|i1", 1, INT, 8},
    [BH_DTYPE_U8] = {"uint8", "u8", "B", "|u1", 1, UINT, 8},
    [BH_DTYPE_I16] = {"int16", "i16", "h", "<i2", 2, INT, 16},
    [BH_DTYPE_U16] = {"uint16", "u16", "H", "<u2", 2, UINT, 16},
    [BH_DTYPE_I32] = {"int32", "i32", "i", "<i4", 4, INT, 32},
    [BH_DTYPE_U32] = {"uint32", "u32", "I", "<u4", 4, UINT, 32},
    [BH_DTYPE_I64] = {"int64", "i64", "l", "<i8", 8, INT, 64},
    [BH_DTYPE_U64] = {"uint64", "u64", "L", "<u8", 8, UINT, 64},
    [BH_DTYPE_BF16] = {"bfloat16", "bf16", "H", "|V2", 2, BFLOAT, 16},
    [BH_DTYPE_BOOL] = {"bool", "bool", "?", "|b1", 1, BOOL, 8},
    [BH_DTYPE_F8_E4M3] = {"float8_e4m3fn", "f8_e4m3", "B", "|V1", 1, F8_E4M3, 8},
    [BH_DTYPE_F8_E5M2] = {"float8_e5m2", "f8_e5m2", "B", "|V1", 1, F8_E5M2, 8},
    [BH_DTYPE_F8_E8M0] = {"float8_e8m0fnu", "f8_e8m0", "B", "|V1", 1, F8_E8M0, 8},
};

bh_dtype bhi_py_dtype_of_dlpack(uint32_t code, uint32_t bits) {
    for (int i = BH_DTYPE_F16; i < BHI_PY_DTYPES; i++) {
        if (bhi_py_dtypes[i].dlpack_code == code && bhi_py_dtypes[i].dlpack_bits == bits) {
            return (bh_dtype)i;
        }
    }
    return BH_DTYPE_NONE;
}

/* Integers by their size: C's long has 4 or 8 bytes, by the byte order that the format names. */
static bh_dtype integer(bool is_signed, Py_ssize_t size) {
    switch (size) {
    case 1:
        return is_signed ? BH_DTYPE_I8 : BH_DTYPE_U8;
    case 2:
        return is_signed ? BH_DTYPE_I16 : BH_DTYPE_U16;
    case 4:
        return is_signed ? BH_DTYPE_I32 : BH_DTYPE_U32;
    case 8:
        return is_signed ? BH_DTYPE_I64 : BH_DTYPE_U64;
    default:
        return BH_DTYPE_NONE;
    }
}

bool bhi_py_dtype_of_format(const char *format, Py_ssize_t itemsize, bh_dtype *out_dtype,
                            const char **out_why) {
    const char *at = format ? format : "B";
    *out_dtype = BH_DTYPE_NONE;
    *out_why = "the library has no such type";
    if (*at == '>' || *at == '!') {
        *out_why = "it is big-endian: convert it to the byte order of the machine, as "
                   "a.astype(a.dtype.newbyteorder('<')) does";
        return at[1] && !at[2] && itemsize == 1 &&
               bhi_py_dtype_of_format(at + 1, 1, out_dtype, out_why);
    }
    if (*at && strchr("@=<", *at)) {
        at++;
    }
    if (*at == 'T' || *at == '(') {
        *out_why = "it is a structured array: copy its fields into arrays of their own";
        return false;
    }
    if (*at == 'O') {
        *out_why = "it has Python objects in it";
        return false;
    }
    if (strspn(at, "0123456789") + 1 == strlen(at) && strchr("swuU", at[strlen(at) - 1])) {
        *out_why = "it is text";
        return false;
    }
    if (!*at || at[1]) {
        return false;
    }
    switch (*at) {
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        *out_dtype = integer(true, itemsize);
        break;
    case 'B':
    case 'c':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        *out_dtype = integer(false, itemsize);
        break;
    case 'e':
    case 'f':
    case 'd':
        *out_dtype = itemsize == 2   ? BH_DTYPE_F16
                     : itemsize == 4 ? BH_DTYPE_F32
                     : itemsize == 8 ? BH_DTYPE_F64
                                     : BH_DTYPE_NONE;
        break;
    case '?':
        *out_dtype = BH_DTYPE_BOOL;
        break;
    default:
        break;
    }
    return *out_dtype != BH_DTYPE_NONE;
}
