#include "formats/dtype.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
    char kind;                 /* as .npy names it; 'B': bfloat */
    const char *code;          /* in a .npy file; NULL: .npy has no such type */
    const char *numpy, *other; /* other names, the first as NumPy and ml_dtypes have it */
} dtypes[] = {
    [BH_DTYPE_F16] = {"f16", 2, 'f', "f2", "float16", NULL},
    [BH_DTYPE_F32] = {"f32", 4, 'f', "f4", "float32", NULL},
    [BH_DTYPE_F64] = {"f64", 8, 'f', "f8", "float64", NULL},
    [BH_DTYPE_I8] = {"i8", 1, 'i', "i1", "int8", NULL},
    [BH_DTYPE_U8] = {"u8", 1, 'u', "u1", "uint8", NULL},
    [BH_DTYPE_I16] = {"i16", 2, 'i', "i2", "int16", NULL},
    [BH_DTYPE_U16] = {"u16", 2, 'u', "u2", "uint16", NULL},
    [BH_DTYPE_I32] = {"i32", 4, 'i', "i4", "int32", NULL},
    [BH_DTYPE_U32] = {"u32", 4, 'u', "u4", "uint32", NULL},
    [BH_DTYPE_I64] = {"i64", 8, 'i', "i8", "int64", NULL},
    [BH_DTYPE_U64] = {"u64", 8, 'u', "u8", "uint64", NULL},
    [BH_DTYPE_BOOL] = {"bool", 1, 'b', "b1", NULL, NULL},
    [BH_DTYPE_BF16] = {"bf16", 2, 'f', NULL, "bfloat16", NULL},
    [BH_DTYPE_F8_E4M3] = {"f8_e4m3", 1, 'f', NULL, "float8_e4m3fn", "f8e4m3"},
    [BH_DTYPE_F8_E5M2] = {"f8_e5m2", 1, 'f', NULL, "float8_e5m2", "f8e5m2"},
    [BH_DTYPE_F8_E8M0] = {"f8_e8m0", 1, 'f', NULL, NULL, NULL},
};
enum { KNOWN = sizeof dtypes / sizeof dtypes[0] };

const bh_dtype bhi_dtypes[BHI_ELEMENT_COUNT] = {
    BH_DTYPE_F16, BH_DTYPE_F32,  BH_DTYPE_F64,  BH_DTYPE_I8,      BH_DTYPE_U8,
    BH_DTYPE_I16, BH_DTYPE_U16,  BH_DTYPE_I32,  BH_DTYPE_U32,     BH_DTYPE_I64,
    BH_DTYPE_U64, BH_DTYPE_BOOL, BH_DTYPE_BF16, BH_DTYPE_F8_E4M3, BH_DTYPE_F8_E5M2,
};

bool bhi_dtype_is_known(bh_dtype dtype) {
    return (uint32_t)dtype < KNOWN && dtypes[dtype].code;
}

bool bhi_dtype_is_float(bh_dtype dtype) {
    return dtypes[dtype].kind == 'f';
}

bool bhi_dtype_is_signed(bh_dtype dtype) {
    return dtypes[dtype].kind == 'i';
}

bool bhi_dtype_is_integer(bh_dtype dtype) {
    return dtypes[dtype].kind == 'i' || dtypes[dtype].kind == 'u';
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
    return dtypes[dtype].code ? dtypes[dtype].code : dtypes[dtype].bytes == 1 ? "u1" : "u2";
}

static bool find(const char *name, size_t length, int count, bh_dtype *out_dtype) {
    for (int i = 0; i < count; i++) {
        const bh_dtype dtype = bhi_dtypes[i];
        const char *const known[] = {dtypes[dtype].name, dtypes[dtype].numpy, dtypes[dtype].other};
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
            if (known[k] && strlen(known[k]) == length && !memcmp(known[k], name, length)) {
                *out_dtype = dtype;
                return true;
            }
        }
    }
    return false;
}

bool bhi_dtype_find(const char *name, size_t length, bh_dtype *out_dtype) {
    return find(name, length, BHI_DTYPE_COUNT, out_dtype);
}

bool bhi_dtype_find_element(const char *name, size_t length, bh_dtype *out_dtype) {
    return find(name, length, BHI_ELEMENT_COUNT, out_dtype);
}

void bhi_dtype_safetensors_name(bh_dtype dtype, char out[BHI_DTYPE_SAFETENSORS]) {
    size_t at = 0;
    for (const char *name = dtypes[dtype].name; name[at]; at++) {
        out[at] = (char)toupper((unsigned char)name[at]);
    }
    out[at] = '\0';
}

bool bhi_dtype_find_safetensors(const char *name, bh_dtype *out_dtype) {
    char own[BHI_DTYPE_SAFETENSORS];
    for (uint32_t i = BH_DTYPE_NONE + 1; i < KNOWN; i++) {
        bhi_dtype_safetensors_name((bh_dtype)i, own);
        if (!strcmp(name, own)) {
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
    switch (dtype) {
    case BH_DTYPE_BF16:
        return BH_NUMBER_BFLOAT;
    case BH_DTYPE_F8_E4M3:
        return BH_NUMBER_F8_E4M3;
    case BH_DTYPE_F8_E5M2:
        return BH_NUMBER_F8_E5M2;
    case BH_DTYPE_F8_E8M0:
        return BH_NUMBER_F8_E8M0;
    case BH_DTYPE_BOOL:
        return BH_NUMBER_BOOL;
    default:
        return bhi_dtype_is_float(dtype)    ? BH_NUMBER_FLOAT
               : bhi_dtype_is_signed(dtype) ? BH_NUMBER_INT
                                            : BH_NUMBER_UINT;
    }
}

bool bhi_dtype_find_number(bh_number_kind kind, uint32_t bits, bh_dtype *out_dtype) {
    for (int i = 0; i < BHI_ELEMENT_COUNT; i++) {
        const bh_dtype dtype = bhi_dtypes[i];
        if (bhi_dtype_number(dtype) == kind && 8 * dtypes[dtype].bytes == bits) {
            *out_dtype = dtype;
            return true;
        }
    }
    return false;
}

struct bhi_float bhi_float_of(bh_dtype dtype) {
    switch (dtype) {
    case BH_DTYPE_F16:
        return bhi_f16;
    case BH_DTYPE_BF16:
        return bhi_bf16;
    case BH_DTYPE_F8_E4M3:
        return bhi_f8_e4m3;
    case BH_DTYPE_F8_E5M2:
        return bhi_f8_e5m2;
    case BH_DTYPE_F32:
        return (struct bhi_float){8, 23, 0x7F800000, 0x7FC00000, 0x1.FFFFFFp127};
    default: /* no double overflows it */
        return (struct bhi_float){11, 52, UINT64_C(0x7FF) << 52, UINT64_C(0xFFF) << 51, INFINITY};
    }
}

double bhi_dtype_to_double(bh_dtype dtype, uint64_t bits) {
    const uint32_t word = (uint32_t)bits;
    float single;
    double real;
    switch (dtype) {
    case BH_DTYPE_F64:
        memcpy(&real, &bits, sizeof real);
        return real;
    case BH_DTYPE_F32:
        memcpy(&single, &word, sizeof single);
        return single;
    default:
        return bhi_float_to_double(bhi_float_of(dtype), bits);
    }
}

uint64_t bhi_dtype_from_double(bh_dtype dtype, double value) {
    uint64_t bits = 0;
    const float single = (float)value;
    switch (dtype) {
    case BH_DTYPE_F64:
        memcpy(&bits, &value, sizeof value);
        return bits;
    case BH_DTYPE_F32:
        memcpy(&bits, &single, sizeof single);
        return bits;
    default:
        return bhi_float_from_double(bhi_float_of(dtype), value);
    }
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
    /* strtod and then a cast would round twice. */
    const bool is_single = dtype == BH_DTYPE_F32;
    *out_bits = bhi_dtype_from_double(dtype, is_single ? (double)strtof(text, NULL) : value);
    const double made = bhi_dtype_to_double(dtype, *out_bits);
    if (isnan(made) != isnan(value) || (isinf(made) && (errno == ERANGE || !isinf(value)))) {
        const double most = bhi_dtype_to_double(dtype, bhi_float_of(dtype).top - 1);
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
    if (bhi_dtype_is_float(dtype)) {
        return parse_float(dtype, text, out_bits, complaint);
    }
    return parse_integer(dtype, text, out_bits, complaint);
}
