#include "templates/values.h"
#include "base/format.h"
#include "templates/lexer.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* -- types -------------------------------------------------------------------------------------- */

static bh_dtype larger(bh_dtype a, bh_dtype b) {
    return bhi_dtype_size(a) < bhi_dtype_size(b) ? b : a;
}

static bh_dtype signed_of(uint32_t bytes) {
    return bytes == 2 ? BH_DTYPE_I16 : bytes == 4 ? BH_DTYPE_I32 : BH_DTYPE_I64;
}

/* The smallest float type that holds all values of an integer type of up to 16 bits (f16, f32); f64
 * for larger ones. */
static bh_dtype float_of(bh_dtype integer) {
    const uint32_t bytes = bhi_dtype_size(integer);
    return bytes == 1 ? BH_DTYPE_F16 : bytes == 2 ? BH_DTYPE_F32 : BH_DTYPE_F64;
}

bh_dtype bhi_promote(bh_dtype a, bh_dtype b) {
    if (a == b || b == BH_DTYPE_BOOL) {
        return a;
    }
    if (a == BH_DTYPE_BOOL) {
        return b;
    }
    if (bhi_dtype_is_float(a) || bhi_dtype_is_float(b)) {
        return larger(bhi_dtype_is_float(a) ? a : float_of(a),
                      bhi_dtype_is_float(b) ? b : float_of(b));
    }
    if (bhi_dtype_is_signed(a) == bhi_dtype_is_signed(b)) {
        return larger(a, b);
    }
    const bh_dtype with = bhi_dtype_is_signed(a) ? a : b;
    const bh_dtype without = bhi_dtype_is_signed(a) ? b : a;
    if (bhi_dtype_size(with) > bhi_dtype_size(without)) {
        return with;
    }
    return without == BH_DTYPE_U64 ? BH_DTYPE_F64 : signed_of(2 * bhi_dtype_size(without));
}

bh_dtype bhi_promote_integer(bh_dtype array) {
    return array == BH_DTYPE_BOOL ? BH_DTYPE_I64 : array;
}

bh_dtype bhi_promote_real(bh_dtype array) {
    return bhi_dtype_is_float(array) ? array : BH_DTYPE_F64;
}

bh_dtype bhi_promote_function(bh_dtype array) {
    return bhi_dtype_is_float(array) ? array : float_of(array);
}

/* -- variables ---------------------------------------------------------------------------------- */

double bhi_weak_real(const struct bhi_value *value) {
    return value->form == BHI_VALUE_REAL ? value->real : (double)value->integer;
}

bool bhi_weak_integer(struct bhi_emitter *emitter, __int128 integer, struct bhi_value *out_value) {
    if (integer < INT64_MIN || integer > (__int128)UINT64_MAX) {
        return bhi_emit_refuse(emitter, "the number is more than 64 bits hold");
    }
    *out_value = (struct bhi_value){.form = BHI_VALUE_INTEGER, .integer = integer};
    return true;
}

bool bhi_emit_refuse(struct bhi_emitter *emitter, const char *format, ...) {
    char why[400];
    va_list list;
    va_start(list, format);
    bhi_vformat(why, sizeof why, format, list);
    va_end(list);
    return bhi_refuse_at(emitter->expression->source, emitter->node->at, emitter->complaint, "%s",
                         why);
}

const char *bhi_register_type(bh_dtype dtype) {
    switch (dtype) {
    case BH_DTYPE_F16:
    case BH_DTYPE_F32:
        return "float";
    case BH_DTYPE_F64:
        return "double";
    case BH_DTYPE_I8:
    case BH_DTYPE_I16:
    case BH_DTYPE_I32:
        return "int";
    case BH_DTYPE_U8:
    case BH_DTYPE_U16:
    case BH_DTYPE_U32:
        return "uint";
    case BH_DTYPE_I64:
        return "int64_t";
    case BH_DTYPE_U64:
        return "uint64_t";
    case BH_DTYPE_BOOL:
    default:
        break;
    }
    return "bool";
}

/* Declares a variable with the value |text|, or that value in parentheses after |function|. */
static void assign(struct bhi_emitter *emitter, bh_dtype dtype, bool overflows,
                   struct bhi_value *out_value, const char *function, const char *text) {
    struct bhi_pen *pen = emitter->pen;
    const uint32_t bits = 8 * bhi_dtype_size(dtype);
    const bool small = overflows && bits < 32 && dtype != BH_DTYPE_BOOL;
    *out_value = (struct bhi_value){.dtype = dtype};
    snprintf(out_value->text, sizeof out_value->text, "t%u", emitter->temporaries++);
    bhi_pen_put(pen, "    %s%s %s = %s%s%s%s;\n", bhi_dtype_is_float(dtype) ? "precise " : "",
                bhi_register_type(dtype), out_value->text, function, *function ? "(" : "", text,
                *function ? ")" : "");
    emitter->wide |= bits == 64 && !bhi_dtype_is_float(dtype);
    if (!small) {
        return;
    }
    if (dtype == BH_DTYPE_F16) {
        emitter->helpers |= BHI_HELPER_HALF;
        bhi_pen_put(pen, "    %s = f16_value(f16_bits(%s));\n", out_value->text, out_value->text);
    } else if (bhi_dtype_is_signed(dtype)) {
        bhi_pen_put(pen, "    %s = bitfieldExtract(%s, 0, %u);\n", out_value->text, out_value->text,
                    bits);
    } else {
        bhi_pen_put(pen, "    %s &= 0x%xu;\n", out_value->text, (1u << bits) - 1);
    }
}

void bhi_emit_assign(struct bhi_emitter *emitter, bh_dtype dtype, bool overflows,
                     struct bhi_value *out_value, const char *format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    bhi_vformat(text, sizeof text, format, list);
    va_end(list);
    assign(emitter, dtype, overflows, out_value, "", text);
}

void bhi_emit_hidden(struct bhi_emitter *emitter, bh_dtype dtype, bool overflows,
                     struct bhi_value *out_value, const char *format, ...) {
    const bool wide = bhi_dtype_size(dtype) == 8;
    char text[256];
    va_list list;
    va_start(list, format);
    bhi_vformat(text, sizeof text, format, list);
    va_end(list);
    if (bhi_dtype_is_float(dtype)) {
        emitter->helpers |= wide ? BHI_HELPER_HIDE_F64 : BHI_HELPER_HIDE_F32;
    } else {
        emitter->helpers |=
            BHI_HELPER_HIDE_I32 * (wide ? 4u : 1u) * (bhi_dtype_is_signed(dtype) ? 1u : 2u);
    }
    assign(emitter, dtype, overflows, out_value, "hide", text);
}

/* -- conversions --------------------------------------------------------------------------------
 */

/* Makes a number of the text a variable. As a push constant it is no part of the kernel, which is the
 * same whatever the number; where those are used up, it is written into the kernel. */
static void put_number(struct bhi_emitter *emitter, bh_dtype dtype, uint64_t bits,
                       struct bhi_value *out_value) {
    char text[BHI_CONSTANT_TEXT];
    uint32_t words[2];
    const uint32_t at = emitter->push->count;
    const bool pushed = bhi_constants_add(emitter->push, dtype, bits);
    bhi_constant_put(dtype, bits, words);
    bhi_emit_hidden(
        emitter, dtype, false, out_value, "%s",
        bhi_constant_text(dtype, bhi_register_type(dtype), at, pushed ? NULL : words, text));
}

static void put_real(struct bhi_emitter *emitter, bh_dtype dtype, double real,
                     struct bhi_value *out_value) {
    uint64_t bits = 0;
    if (isnan(real)) {
        bits = dtype == BH_DTYPE_F16   ? 0x7e00
               : dtype == BH_DTYPE_F32 ? 0x7fc00000
                                       : 0x7ff8000000000000;
    } else if (dtype == BH_DTYPE_F16) {
        bits = bhi_f16_from_double(real);
    } else if (dtype == BH_DTYPE_F64) {
        memcpy(&bits, &real, sizeof real);
    } else {
        /* From halfway between the largest float and the next power of two, a number rounds to
         * infinity. */
        const bool over = fabs(real) > (double)FLT_MAX;
        const float most = fabs(real) >= 0x1.ffffffp127 ? INFINITY : FLT_MAX;
        const float narrow = over ? copysignf(most, (float)copysign(1, real)) : (float)real;
        memcpy(&bits, &narrow, sizeof narrow);
    }
    put_number(emitter, dtype, bits, out_value);
}

static bool put_integer(struct bhi_emitter *emitter, bh_dtype dtype, __int128 integer,
                        struct bhi_value *out_value) {
    const uint32_t bits = 8 * bhi_dtype_size(dtype);
    const bool is_signed = bhi_dtype_is_signed(dtype);
    const __int128 least = is_signed ? -((__int128)1 << (bits - 1)) : 0;
    const __int128 most = ((__int128)1 << (is_signed ? bits - 1 : bits)) - 1;
    if (integer < least || integer > most) {
        return bhi_emit_refuse(
            emitter, "the number %s%llu is out of the range of %s", integer < 0 ? "-" : "",
            (unsigned long long)(integer < 0 ? -integer : integer), bhi_dtype_name(dtype));
    }
    put_number(emitter, dtype, (uint64_t)integer, out_value);
    return true;
}

static bool convert_weak(struct bhi_emitter *emitter, const struct bhi_value *value, bh_dtype dtype,
                         struct bhi_value *out_value) {
    const bool integer = value->form == BHI_VALUE_INTEGER;
    if (bhi_dtype_is_float(dtype)) {
        put_real(emitter, dtype, bhi_weak_real(value), out_value);
        return true;
    }
    if (dtype == BH_DTYPE_BOOL) {
        const bool truth = integer ? value->integer != 0 : value->real != 0;
        bhi_emit_assign(emitter, dtype, false, out_value, truth ? "true" : "false");
        return true;
    }
    if (integer) {
        return put_integer(emitter, dtype, value->integer, out_value);
    }
    if (!(fabs(value->real) < 0x1p63)) {
        return bhi_emit_refuse(emitter, "the number %g is out of the range of %s", value->real,
                               bhi_dtype_name(dtype));
    }
    return put_integer(emitter, dtype, (__int128)value->real, out_value);
}

bool bhi_emit_convert(struct bhi_emitter *emitter, const struct bhi_value *value, bh_dtype dtype,
                      struct bhi_value *out_value) {
    if (value->form != BHI_VALUE_TYPED) {
        return convert_weak(emitter, value, dtype, out_value);
    }
    const bh_dtype from = value->dtype;
    const char *text = value->text, *type = bhi_register_type(dtype);
    if (from == dtype) {
        *out_value = *value;
    } else if (dtype == BH_DTYPE_BOOL) {
        bhi_emit_assign(emitter, dtype, false, out_value, "%s != %s(0)", text,
                        bhi_register_type(from));
    } else if (from == BH_DTYPE_F64 && dtype == BH_DTYPE_F16) {
        emitter->helpers |= BHI_HELPER_NARROW;
        bhi_emit_hidden(emitter, dtype, true, out_value, "narrow(%s)", text);
    } else if (from == BH_DTYPE_BOOL || bhi_dtype_is_float(from) || bhi_dtype_is_float(dtype)) {
        bhi_emit_hidden(emitter, dtype, true, out_value, "%s(%s)", type, text);
    } else if (bhi_dtype_size(dtype) == 8 && bhi_dtype_size(from) < 8) {
        /* Widens first, then changes the sign: two's complement. */
        bhi_emit_hidden(emitter, dtype, false, out_value, "%s(%s(%s))", type,
                        bhi_dtype_is_signed(from) ? "int64_t" : "uint64_t", text);
    } else {
        bhi_emit_assign(emitter, dtype, bhi_dtype_size(dtype) < 4, out_value, "%s(%s)", type, text);
    }
    return true;
}

bool bhi_emit_convert_both(struct bhi_emitter *emitter, const struct bhi_value *a,
                           const struct bhi_value *b, bh_dtype dtype,
                           struct bhi_value out_values[2]) {
    return bhi_emit_convert(emitter, a, dtype, &out_values[0]) &&
           bhi_emit_convert(emitter, b, dtype, &out_values[1]);
}

bh_dtype bhi_value_dtype(const struct bhi_value *value) {
    if (value->form == BHI_VALUE_TYPED) {
        return value->dtype;
    }
    if (value->form == BHI_VALUE_REAL) {
        return BH_DTYPE_F64;
    }
    return value->integer > INT64_MAX ? BH_DTYPE_U64 : BH_DTYPE_I64;
}

bh_dtype bhi_value_common(const struct bhi_value *values, uint32_t count) {
    bh_dtype typed = BH_DTYPE_NONE, weak = BH_DTYPE_NONE;
    /* Floats first: i16, u16 and f32 are f32 in any order, although i16 and u16 alone are i32. */
    for (int floats = 1; floats >= 0; floats--) {
        for (uint32_t i = 0; i < count; i++) {
            const bh_dtype own = bhi_value_dtype(&values[i]);
            bh_dtype *sum = values[i].form == BHI_VALUE_TYPED ? &typed : &weak;
            if (bhi_dtype_is_float(own) == (floats != 0)) {
                *sum = *sum == BH_DTYPE_NONE ? own : bhi_promote(*sum, own);
            }
        }
    }
    return typed == BH_DTYPE_NONE     ? weak
           : weak == BH_DTYPE_NONE    ? typed
           : bhi_dtype_is_float(weak) ? bhi_promote_real(typed)
                                      : bhi_promote_integer(typed);
}

bh_dtype bhi_value_promote(const struct bhi_value *a, const struct bhi_value *b) {
    const struct bhi_value both[2] = {*a, *b};
    return bhi_value_common(both, 2);
}
