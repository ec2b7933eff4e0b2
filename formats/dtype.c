#include "formats/dtype.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
    char kind;        /* as .npy names it; 'B': bfloat */
    const char *code; /* in a .npy file; NULL: .npy has no such type */
} dtypes[] = {
    [BH_DTYPE_F16] = {"f16", 2, 'f', "f2"},         [BH_DTYPE_F32] = {"f32", 4, 'f', "f4"},
    [BH_DTYPE_F64] = {"f64", 8, 'f', "f8"},         [BH_DTYPE_I8] = {"i8", 1, 'i', "i1"},
    [BH_DTYPE_U8] = {"u8", 1, 'u', "u1"},           [BH_DTYPE_I16] = {"i16", 2, 'i', "i2"},
    [BH_DTYPE_U16] = {"u16", 2, 'u', "u2"},         [BH_DTYPE_I32] = {"i32", 4, 'i', "i4"},
    [BH_DTYPE_U32] = {"u32", 4, 'u', "u4"},         [BH_DTYPE_I64] = {"i64", 8, 'i', "i8"},
    [BH_DTYPE_U64] = {"u64", 8, 'u', "u8"},         [BH_DTYPE_BOOL] = {"bool", 1, 'b', "b1"},
    [BH_DTYPE_BF16] = {"bf16", 2, 'B', NULL},       [BH_DTYPE_F8_E4M3] = {"f8_e4m3", 1, 'f', NULL},
    [BH_DTYPE_F8_E5M2] = {"f8_e5m2", 1, 'f', NULL}, [BH_DTYPE_F8_E8M0] = {"f8_e8m0", 1, 'f', NULL},
};
enum { KNOWN = sizeof dtypes / sizeof dtypes[0] };

const bh_dtype bhi_dtypes[BHI_DTYPE_COUNT] = {
    BH_DTYPE_F16, BH_DTYPE_F32, BH_DTYPE_F64, BH_DTYPE_I8,  BH_DTYPE_U8,  BH_DTYPE_I16,
    BH_DTYPE_U16, BH_DTYPE_I32, BH_DTYPE_U32, BH_DTYPE_I64, BH_DTYPE_U64, BH_DTYPE_BOOL,
};

bool bhi_dtype_is_known(bh_dtype dtype) {
    return (uint32_t)dtype < KNOWN && dtypes[dtype].code;
}

const char *bhi_dtype_any_name(bh_dtype dtype) {
    return (uint32_t)dtype < KNOWN ? dtypes[dtype].name : NULL;
}

uint32_t bhi_dtype_any_size(bh_dtype dtype) {
    return (uint32_t)dtype < KNOWN ? dtypes[dtype].bytes : 0;
}

const char *bhi_dtype_name(bh_dtype dtype) {
    return dtypes[dtype].name;
}

uint32_t bhi_dtype_size(bh_dtype dtype) {
    return dtypes[dtype].bytes;
}

const char *bhi_dtype_npy_code(bh_dtype dtype) {
    return dtypes[dtype].code;
}

bool bhi_dtype_find(const char *name, size_t length, bh_dtype *out_dtype) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        const char *known = dtypes[bhi_dtypes[i]].name;
        if (strlen(known) == length && !memcmp(known, name, length)) {
            *out_dtype = bhi_dtypes[i];
            return true;
        }
    }
    return false;
}

bool bhi_dtype_find_safetensors(const char *name, bh_dtype *out_dtype) {
    for (uint32_t i = BH_DTYPE_NONE + 1; i < KNOWN; i++) {
        size_t at = 0;
        while (name[at] && name[at] == toupper((unsigned char)dtypes[i].name[at])) {
            at++;
        }
        if (!name[at] && !dtypes[i].name[at]) {
            *out_dtype = (bh_dtype)i;
            return true;
        }
    }
    return false;
}

bool bhi_dtype_find_npy(char kind, uint64_t bytes, bh_dtype *out_dtype) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        if (dtypes[bhi_dtypes[i]].kind == kind && dtypes[bhi_dtypes[i]].bytes == bytes) {
            *out_dtype = bhi_dtypes[i];
            return true;
        }
    }
    return false;
}

bh_number_kind bhi_dtype_number(bh_dtype dtype) {
    switch (dtypes[dtype].kind) {
    case 'f':
        return BH_NUMBER_FLOAT;
    case 'i':
        return BH_NUMBER_INT;
    case 'u':
        return BH_NUMBER_UINT;
    case 'B':
        return BH_NUMBER_BFLOAT;
    default:
        return BH_NUMBER_BOOL;
    }
}

bool bhi_dtype_find_number(bh_number_kind kind, uint32_t bits, bh_dtype *out_dtype) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        const bh_dtype dtype = bhi_dtypes[i];
        if (bhi_dtype_number(dtype) == kind && 8 * dtypes[dtype].bytes == bits) {
            *out_dtype = dtype;
            return true;
        }
    }
    return false;
}

/* 16 after 0x, otherwise 10. A leading zero does not mean octal. */
static int base_of(const char *digits) {
    return digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
}

static bool parse_integer(bh_dtype dtype, const char *text, uint64_t *out_bits,
                          struct bhi_complaint *complaint) {
    const char *name = dtypes[dtype].name;
    uint32_t width = dtypes[dtype].bytes * 8;
    bool is_signed = dtypes[dtype].kind == 'i';
    bool negative = text[0] == '-';
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    char *end = NULL;

    if (!isdigit((unsigned char)digits[0])) {
        return bhi_refuse(complaint, "'%s' is not a%s %s", text, name[0] == 'u' ? "" : "n", name);
    }
    errno = 0;
    unsigned long long magnitude = strtoull(digits, &end, base_of(digits));
    if (*end) {
        return bhi_refuse(complaint, "'%s' is not a%s %s", text, name[0] == 'u' ? "" : "n", name);
    }
    uint64_t top = is_signed ? UINT64_C(1) << (width - 1) : 0;
    uint64_t limit =
        is_signed ? (negative ? top : top - 1) : (negative ? 0 : UINT64_MAX >> (64 - width));
    if (errno == ERANGE || magnitude > limit) {
        return bhi_refuse(complaint, "'%s' is out of the range of %s: %s%llu to %llu", text, name,
                          is_signed ? "-" : "", (unsigned long long)top,
                          (unsigned long long)(is_signed ? top - 1 : UINT64_MAX >> (64 - width)));
    }
    uint64_t value = negative ? -(uint64_t)magnitude : (uint64_t)magnitude;
    *out_bits = value & UINT64_MAX >> (64 - width);
    return true;
}

static bool parse_float(bh_dtype dtype, const char *text, uint64_t *out_bits,
                        struct bhi_complaint *complaint) {
    const char *name = dtypes[dtype].name;
    char *end = NULL;

    if (!text[0] || isspace((unsigned char)text[0])) {
        return bhi_refuse(complaint, "'%s' is not a%s %s", text, name[0] == 'u' ? "" : "n", name);
    }
    errno = 0;
    double value = strtod(text, &end);
    if (*end) {
        return bhi_refuse(complaint, "'%s' is not a%s %s", text, name[0] == 'u' ? "" : "n", name);
    }
    bool fits = !(errno == ERANGE && isinf(value));
    *out_bits = 0;
    if (dtype == BH_DTYPE_F64) {
        memcpy(out_bits, &value, sizeof value);
    } else if (dtype == BH_DTYPE_F32) {
        float narrow = strtof(text, NULL); /* strtod and then a cast would round twice */
        fits = fits && isinf(narrow) == isinf(value);
        memcpy(out_bits, &narrow, sizeof narrow);
    } else {
        *out_bits = bhi_f16_from_double(value);
        fits = fits && ((*out_bits & 0x7FFF) == 0x7C00) == (isinf(value) != 0);
    }
    if (!fits) {
        const double most = dtype == BH_DTYPE_F64   ? DBL_MAX
                            : dtype == BH_DTYPE_F32 ? (double)FLT_MAX
                                                    : 65504;
        return bhi_refuse(complaint, "'%s' is out of the range of %s: -%g to %g", text, name, most,
                          most);
    }
    return true;
}

static bool parse_bool(const char *text, uint64_t *out_bits, struct bhi_complaint *complaint) {
    *out_bits = !strcmp(text, "true") || !strcmp(text, "1");
    if (!*out_bits && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
        return bhi_refuse(complaint, "'%s' is not a bool: write true or false, 1 or 0", text);
    }
    return true;
}

bool bhi_dtype_parse(bh_dtype dtype, const char *text, uint64_t *out_bits,
                     struct bhi_complaint *complaint) {
    if (dtypes[dtype].kind == 'b') {
        return parse_bool(text, out_bits, complaint);
    }
    if (dtypes[dtype].kind == 'f') {
        return parse_float(dtype, text, out_bits, complaint);
    }
    return parse_integer(dtype, text, out_bits, complaint);
}
