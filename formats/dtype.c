#include "formats/dtype.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
    char kind;
    const char *code;
} dtypes[] = {
#define BHI_DTYPE(name, bytes, kind, code) {#name, bytes, kind, code},
    BHI_DTYPES
#undef BHI_DTYPE
};

const char *bhi_dtype_name(enum bhi_dtype dtype) {
    return dtypes[dtype].name;
}

uint32_t bhi_dtype_size(enum bhi_dtype dtype) {
    return dtypes[dtype].bytes;
}

const char *bhi_dtype_npy_code(enum bhi_dtype dtype) {
    return dtypes[dtype].code;
}

bool bhi_dtype_find(const char *name, size_t length, enum bhi_dtype *out_dtype) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        if (strlen(dtypes[i].name) == length && !memcmp(dtypes[i].name, name, length)) {
            *out_dtype = (enum bhi_dtype)i;
            return true;
        }
    }
    return false;
}

bool bhi_dtype_find_npy(char kind, uint64_t bytes, enum bhi_dtype *out_dtype) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        if (dtypes[i].kind == kind && dtypes[i].bytes == bytes) {
            *out_dtype = (enum bhi_dtype)i;
            return true;
        }
    }
    return false;
}

bh_dtype bhi_dtype_public(enum bhi_dtype dtype) {
    return dtype == BHI_DTYPE_bool ? BH_DTYPE_BOOL : (bh_dtype)(BH_DTYPE_F16 + (int)dtype);
}
_Static_assert(BH_DTYPE_U64 - BH_DTYPE_F16 == BHI_DTYPE_u64 && BHI_DTYPE_COUNT == BHI_DTYPE_u64 + 2,
               "the same order, and bool");

bool bhi_dtype_from_public(bh_dtype dtype, enum bhi_dtype *out_dtype) {
    *out_dtype =
        dtype == BH_DTYPE_BOOL ? BHI_DTYPE_bool : (enum bhi_dtype)((int)dtype - BH_DTYPE_F16);
    return dtype == BH_DTYPE_BOOL || (dtype >= BH_DTYPE_F16 && dtype <= BH_DTYPE_U64);
}

const char *bhi_dtype_public_name(bh_dtype dtype) {
    enum bhi_dtype one;
    if (bhi_dtype_from_public(dtype, &one)) {
        return dtypes[one].name;
    }
    return dtype == BH_DTYPE_BF16      ? "bf16"
           : dtype == BH_DTYPE_F8_E4M3 ? "f8_e4m3"
           : dtype == BH_DTYPE_F8_E5M2 ? "f8_e5m2"
                                       : NULL;
}

uint16_t bhi_f16_from_double(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) {
        return sign | 0x7E00;
    }
    double magnitude = fabs(value);
    if (magnitude >= 65520.0) { /* halfway between the largest finite, 65504, and 65536 */
        return sign | 0x7C00;
    }
    if (magnitude < 0x1p-14) { /* subnormal: units of 2^-24; 1024 of them carry into a normal */
        return (uint16_t)(sign | (uint16_t)nearbyint(magnitude * 0x1p24));
    }
    int exponent = 0;
    double fraction = frexp(magnitude, &exponent); /* in [0.5, 1) */
    /* 11 significant bits; a carry to 2048 moves into the exponent by itself. */
    uint32_t significand = (uint32_t)nearbyint(fraction * 2048.0);
    return (uint16_t)(sign | (((uint32_t)(exponent + 13) << 10) + significand));
}

double bhi_f16_to_double(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    int fraction = bits & 1023;
    double magnitude;
    if (exponent == 31) {
        magnitude = fraction ? NAN : INFINITY;
    } else if (exponent == 0) {
        magnitude = fraction * 0x1p-24;
    } else {
        magnitude = ldexp(1024 + fraction, exponent - 25);
    }
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* Base 10, or 16 after 0x: a leading zero is not octal. */
static int base_of(const char *digits) {
    return digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
}

static bool parse_integer(enum bhi_dtype dtype, const char *text, uint64_t *out_bits,
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
        return bhi_refuse(complaint, "'%s' is out of the range of %s", text, name);
    }
    uint64_t value = negative ? -(uint64_t)magnitude : (uint64_t)magnitude;
    *out_bits = value & UINT64_MAX >> (64 - width);
    return true;
}

static bool parse_float(enum bhi_dtype dtype, const char *text, uint64_t *out_bits,
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
    if (dtype == BHI_DTYPE_f64) {
        memcpy(out_bits, &value, sizeof value);
    } else if (dtype == BHI_DTYPE_f32) {
        float narrow = strtof(text, NULL); /* not by way of double: that rounds twice */
        fits = fits && isinf(narrow) == isinf(value);
        memcpy(out_bits, &narrow, sizeof narrow);
    } else {
        *out_bits = bhi_f16_from_double(value);
        fits = fits && ((*out_bits & 0x7FFF) == 0x7C00) == (isinf(value) != 0);
    }
    if (!fits) {
        return bhi_refuse(complaint, "'%s' is out of the range of %s", text, name);
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

bool bhi_dtype_parse(enum bhi_dtype dtype, const char *text, uint64_t *out_bits,
                     struct bhi_complaint *complaint) {
    if (dtypes[dtype].kind == 'b') {
        return parse_bool(text, out_bits, complaint);
    }
    if (dtypes[dtype].kind == 'f') {
        return parse_float(dtype, text, out_bits, complaint);
    }
    return parse_integer(dtype, text, out_bits, complaint);
}
