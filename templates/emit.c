#include "templates/emit.h"

#include "templates/functions.h"
#include "templates/operators.h"
#include "templates/reduce.h"
#include "templates/values.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- helpers ------------------------------------------------------------------------------------
 */

/* To nearest even. */
void bhi_emit_small_float(struct bhi_pen *pen, bh_dtype dtype) {
    const char *const name = bhi_dtype_name(dtype);
    const struct bhi_float f = bhi_float_of(dtype);
    const uint32_t shift = 23 - f.mantissa, sign = f.exponent + f.mantissa;
    const uint32_t bias = (128 - (1u << (f.exponent - 1))) << 23;
    const double denormals = ldexp(1, (1 << (f.exponent - 1)) - 2 + (int)f.mantissa);
    float overflow = (float)f.overflow;
    uint32_t limit;
    overflow = (double)overflow < f.overflow ? nextafterf(overflow, INFINITY) : overflow;
    memcpy(&limit, &overflow, sizeof limit);
    bhi_pen_put(pen,
                "uint %s_bits(float v) {\n"
                "    uint f = floatBitsToUint(v), s = f >> %u & 0x%xu, m = f & 0x7fffffffu;\n"
                "    if (m > 0x7f800000u) return s | 0x%xu;\n"
                "    if (m >= 0x%xu) return s | 0x%xu;\n",
                name, 31 - sign, 1u << sign, (uint32_t)f.nan, limit, (uint32_t)f.top);
    if (bias) { /* bfloat16 has the denormal numbers of floats */
        bhi_pen_put(pen,
                    "    if (m < 0x%xu) return s | uint(roundEven(uintBitsToFloat(m) * %.1f));\n",
                    bias + (1u << 23), denormals);
    }
    bhi_pen_put(
        pen,
        "    return s | m + 0x%xu + (m >> %u & 1u) - 0x%xu >> %u;\n"
        "}\n"
        "float %s_value(uint h) {\n"
        "    uint s = (h & 0x%xu) << %u, m = h & 0x%xu;\n"
        "    if (m >= 0x%xu) return uintBitsToFloat(s | 0x7f800000u | (m & 0x%xu) << %u);\n",
        (1u << (shift - 1)) - 1, shift, bias, shift, name, 1u << sign, 31 - sign, (1u << sign) - 1,
        (uint32_t)f.top, (1u << f.mantissa) - 1, shift);
    if (bias) {
        bhi_pen_put(pen,
                    "    if (m < 0x%xu) return uintBitsToFloat(s | floatBitsToUint(float(m) / "
                    "%.1f));\n",
                    1u << f.mantissa, denormals);
    }
    bhi_pen_put(pen, "    return uintBitsToFloat(s | (m << %u) + 0x%xu);\n}\n", shift, bias);
}

/* Rounds to odd, so that rounding the result to a half is rounding |v| once. */
static const char narrow_text[] =
    "float narrow(double v) {\n"
    "    float f = float(v);\n"
    "    double back = double(f);\n"
    "    if (back == v || v != v) return f;\n"
    "    return uintBitsToFloat(floatBitsToUint(f) - uint(abs(back) > abs(v)) | 1u);\n"
    "}\n";

static void put_division(struct bhi_pen *pen, const char *type, bool is_signed) {
    if (!is_signed) {
        bhi_pen_put(pen,
                    "%s floor_divide(%s a, %s b) {\n"
                    "    return b == %s(0) ? %s(0) : a / max(b, %s(1));\n"
                    "}\n"
                    "%s floor_modulo(%s a, %s b) {\n"
                    "    return b == %s(0) ? %s(0) : a - a / max(b, %s(1)) * b;\n"
                    "}\n",
                    type, type, type, type, type, type, type, type, type, type, type, type);
        return;
    }
    /* Division by 0 gives 0. The device never divides by 0, nor the least number by -1: both are
     * undefined there. */
    bhi_pen_put(pen,
                "%s floor_divide(%s a, %s b) {\n"
                "    bool plain = b != %s(0) && b != %s(-1);\n"
                "    %s d = plain ? b : %s(1), q = a / d;\n"
                "    if (q * d != a && a < %s(0) != d < %s(0)) q -= %s(1);\n"
                "    return plain ? q : b == %s(0) ? %s(0) : -a;\n"
                "}\n"
                "%s floor_modulo(%s a, %s b) {\n"
                "    return b == %s(0) ? %s(0) : a - floor_divide(a, b) * b;\n"
                "}\n",
                type, type, type, type, type, type, type, type, type, type, type, type, type, type,
                type, type, type);
}

/* zero is 0 whatever the launch, but no driver knows that. It depends on the element because
 * lavapipe compiles a variant for the values of push constants that alone decide a branch. */
static const char zero_text[] = "uint zero;\n";

void bhi_emit_zero(struct bhi_pen *pen, uint32_t helpers) {
    if (helpers >= (uint32_t)BHI_HELPER_HIDE_I32) {
        bhi_pen_put(pen, "    zero = uint((n & ~i) > 0xffff0000u);\n");
    }
}

void bhi_emit_helpers(struct bhi_pen *pen, uint32_t helpers) {
    static const char *const types[] = {"int", "uint", "int64_t", "uint64_t"};
    if (helpers >= (uint32_t)BHI_HELPER_HIDE_I32) {
        bhi_pen_put(pen, "%s", zero_text);
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (helpers & (uint32_t)BHI_HELPER_HIDE_I32 << i) {
            bhi_pen_put(pen, "%s hide(%s v) { return v ^ %s(zero); }\n", types[i], types[i],
                        types[i]);
        }
    }
    if (helpers & BHI_HELPER_HIDE_F32) {
        bhi_pen_put(pen,
                    "float hide(float v) { return uintBitsToFloat(floatBitsToUint(v) ^ zero); }\n");
    }
    if (helpers & BHI_HELPER_HIDE_F64) {
        bhi_pen_put(
            pen, "double hide(double v) { return packDouble2x32(unpackDouble2x32(v) ^ zero); }\n");
    }
    if (helpers & BHI_HELPER_HALF) {
        bhi_emit_small_float(pen, BH_DTYPE_F16);
    }
    if (helpers & BHI_HELPER_NARROW) {
        bhi_pen_put(pen, "%s", narrow_text);
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (helpers & (uint32_t)BHI_HELPER_DIVIDE_I32 << i) {
            put_division(pen, types[i], i % 2 == 0);
        }
    }
}

/* -- function calls -------------------------------------------------------------------------- */

enum { POWER = 16 }; /* largest constant power that is computed by multiplying */

/* Refuses a function that GLSL does not have for doubles. */
static bool refuse_doubles(struct bhi_emitter *emitter, const char *name,
                           const struct bhi_value *a) {
    const bh_dtype dtype = bhi_value_dtype(a);
    if (dtype == BH_DTYPE_F64) {
        return bhi_emit_refuse(emitter, "GLSL has no %s of f64; write %s(f32(...))", name, name);
    }
    return bhi_emit_refuse(
        emitter, "%s of %s is f64, as in NumPy, but GLSL has no such function; write %s(f32(...))",
        name, bhi_dtype_name(dtype), name);
}

/* Converts all arguments to the float type of the result. */
static bool as_floats(struct bhi_emitter *emitter, const struct bhi_value *arguments,
                      uint32_t count, struct bhi_value *out, bh_dtype *out_dtype) {
    *out_dtype = bhi_promote_function(bhi_value_common(arguments, count));
    for (uint32_t i = 0; i < count; i++) {
        if (!bhi_emit_convert(emitter, &arguments[i], *out_dtype, &out[i])) {
            return false;
        }
    }
    return true;
}

static bool all_weak(const struct bhi_value *arguments, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (arguments[i].form == BHI_VALUE_TYPED) {
            return false;
        }
    }
    return true;
}

static bool weak_real(double real, struct bhi_value *out_value) {
    *out_value = (struct bhi_value){.form = BHI_VALUE_REAL, .real = real};
    return true;
}

static bool emit_math(struct bhi_emitter *emitter, const struct bhi_function *function,
                      const struct bhi_value *arguments, struct bhi_value *out_value) {
    const uint32_t count = emitter->node->count;
    struct bhi_value v[3];
    bh_dtype dtype;
    if (all_weak(arguments, count)) {
        return weak_real(count == 2
                             ? atan2(bhi_weak_real(&arguments[0]), bhi_weak_real(&arguments[1]))
                             : function->fold(bhi_weak_real(&arguments[0])),
                         out_value);
    }
    if (!as_floats(emitter, arguments, count, v, &dtype)) {
        return false;
    }
    if (dtype == BH_DTYPE_F64 && !function->doubles) {
        return refuse_doubles(emitter, function->name,
                              arguments[0].form == BHI_VALUE_TYPED ? &arguments[0] : &arguments[1]);
    }
    bhi_emit_assign(emitter, dtype, true, out_value, "%s(%s%s%s)", function->glsl, v[0].text,
                    count == 2 ? ", " : "", count == 2 ? v[1].text : "");
    return true;
}

static bool emit_round(struct bhi_emitter *emitter, const struct bhi_function *function,
                       const struct bhi_value *a, struct bhi_value *out_value) {
    if (a->form == BHI_VALUE_REAL) {
        return weak_real(function->fold(a->real), out_value);
    }
    *out_value = *a;
    if (a->form == BHI_VALUE_TYPED && bhi_dtype_is_float(a->dtype)) {
        bhi_emit_assign(emitter, a->dtype, false, out_value, "%s(%s)", function->glsl, a->text);
    }
    return true;
}

/* NumPy's minimum and maximum: if either value is NaN, so is the result. */
static bool emit_least(struct bhi_emitter *emitter, bool least, const struct bhi_value *a,
                       const struct bhi_value *b, struct bhi_value *out_value) {
    struct bhi_value v[2];
    if (a->form != BHI_VALUE_TYPED && b->form != BHI_VALUE_TYPED) {
        const double x = bhi_weak_real(a), y = bhi_weak_real(b);
        const bool integers = a->form == BHI_VALUE_INTEGER && b->form == BHI_VALUE_INTEGER;
        const bool first = integers ? (least ? a->integer <= b->integer : a->integer >= b->integer)
                                    : (isnan(x) || (least ? x <= y : x >= y));
        *out_value = first ? *a : *b;
        return true;
    }
    const bh_dtype dtype = bhi_value_promote(a, b);
    if (!bhi_emit_convert_both(emitter, a, b, dtype, v)) {
        return false;
    }
    if (dtype == BH_DTYPE_BOOL) {
        bhi_emit_assign(emitter, dtype, false, out_value, "%s %s %s", v[0].text,
                        least ? "&&" : "||", v[1].text);
    } else if (bhi_dtype_is_float(dtype)) {
        bhi_emit_assign(emitter, dtype, false, out_value, "%s %s %s || isnan(%s) ? %s : %s",
                        v[0].text, least ? "<=" : ">=", v[1].text, v[0].text, v[0].text, v[1].text);
    } else {
        bhi_emit_assign(emitter, dtype, false, out_value, "%s(%s, %s)", least ? "min" : "max",
                        v[0].text, v[1].text);
    }
    return true;
}

static bool emit_clamp(struct bhi_emitter *emitter, const struct bhi_value *arguments,
                       struct bhi_value *out_value) {
    struct bhi_value v[3], inner;
    for (uint32_t i = 0; i < 3; i++) {
        v[i] = arguments[i];
        if (!all_weak(arguments, 3) &&
            !bhi_emit_convert(emitter, &arguments[i], bhi_value_common(arguments, 3), &v[i])) {
            return false;
        }
    }
    return emit_least(emitter, false, &v[0], &v[1], &inner) &&
           emit_least(emitter, true, &inner, &v[2], out_value);
}

static bool emit_abs(struct bhi_emitter *emitter, const struct bhi_value *a,
                     struct bhi_value *out_value) {
    if (a->form == BHI_VALUE_REAL) {
        return weak_real(fabs(a->real), out_value);
    }
    if (a->form == BHI_VALUE_INTEGER) {
        return bhi_weak_integer(emitter, a->integer < 0 ? -a->integer : a->integer, out_value);
    }
    *out_value = *a;
    if (bhi_dtype_is_float(a->dtype)) {
        bhi_emit_assign(emitter, a->dtype, false, out_value, "abs(%s)", a->text);
    } else if (bhi_dtype_is_signed(a->dtype)) {
        bhi_emit_assign(emitter, a->dtype, true, out_value, "%s < %s(0) ? -%s : %s", a->text,
                        bhi_register_type(a->dtype), a->text, a->text);
    }
    return true;
}

static bool emit_sign(struct bhi_emitter *emitter, const struct bhi_value *a,
                      struct bhi_value *out_value) {
    if (a->form == BHI_VALUE_REAL) {
        return weak_real(a->real > 0 ? 1 : a->real < 0 ? -1 : a->real, out_value);
    }
    if (a->form == BHI_VALUE_INTEGER) {
        return bhi_weak_integer(emitter, (a->integer > 0) - (a->integer < 0), out_value);
    }
    if (a->dtype == BH_DTYPE_BOOL) {
        return bhi_emit_refuse(emitter, "sign does not take bool");
    }
    const char *type = bhi_register_type(a->dtype);
    if (bhi_dtype_is_integer(a->dtype) && !bhi_dtype_is_signed(a->dtype)) {
        bhi_emit_assign(emitter, a->dtype, false, out_value, "min(%s, %s(1))", a->text, type);
    } else { /* a NaN stays NaN, and a zero stays zero without its sign */
        bhi_emit_hidden(emitter, a->dtype, false, out_value,
                        "%s > %s(0) ? %s(1) : %s < %s(0) ? %s(-1) : %s == %s(0) ? %s(0) : %s",
                        a->text, type, type, a->text, type, type, a->text, type, type, a->text);
    }
    return true;
}

static bool emit_is(struct bhi_emitter *emitter, const char *name, const struct bhi_value *a,
                    struct bhi_value *out_value) {
    struct bhi_value v;
    if (!bhi_emit_convert(emitter, a, bhi_value_dtype(a), &v)) {
        return false;
    }
    if (bhi_dtype_is_float(v.dtype)) {
        bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, "%s(%s)", name, v.text);
    } else {
        bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, "false");
    }
    return true;
}

/* Computes x to a constant |power| by multiplying. */
static void emit_product(struct bhi_emitter *emitter, const struct bhi_value *x, uint32_t power,
                         struct bhi_value *out_value) {
    *out_value = *x;
    for (uint32_t i = 1; i < power; i++) {
        const struct bhi_value left = *out_value;
        bhi_emit_assign(emitter, x->dtype, true, out_value, "%s * %s", left.text, x->text);
    }
}

static bool emit_pow(struct bhi_emitter *emitter, const struct bhi_value *arguments,
                     struct bhi_value *out_value) {
    const struct bhi_value *x = &arguments[0], *power = &arguments[1];
    struct bhi_value v[2];
    bh_dtype dtype;
    if (all_weak(arguments, 2)) {
        return weak_real(pow(bhi_weak_real(x), bhi_weak_real(power)), out_value);
    }
    if (power->form == BHI_VALUE_INTEGER && power->integer >= 0 && power->integer <= POWER) {
        struct bhi_value base, one = {.form = BHI_VALUE_INTEGER, .integer = 1};
        const bh_dtype own = x->dtype == BH_DTYPE_BOOL ? BH_DTYPE_I64 : x->dtype;
        if (!bhi_emit_convert(emitter, power->integer ? x : &one, own, &base)) {
            return false;
        }
        emit_product(emitter, &base, (uint32_t)power->integer, out_value);
        return true;
    }
    if (!bhi_dtype_is_float(bhi_value_promote(x, power))) {
        return bhi_emit_refuse(emitter,
                               "pow of integers takes a written power from 0 to %d; write "
                               "pow(f32(x), y)",
                               POWER);
    }
    if (!as_floats(emitter, arguments, 2, v, &dtype)) {
        return false;
    }
    if (dtype == BH_DTYPE_F64) {
        return refuse_doubles(emitter, "pow", x->form == BHI_VALUE_TYPED ? x : power);
    }
    bhi_emit_assign(emitter, dtype, true, out_value, "pow(%s, %s)", v[0].text, v[1].text);
    return true;
}

/* -- functions that GLSL defines by a formula ------------------------------------------------- */

/* v[0] - v[1] * floor(v[0] / v[1]) */
static void emit_mod(struct bhi_emitter *emitter, bh_dtype dtype, const struct bhi_value *v,
                     struct bhi_value *out_value) {
    struct bhi_value quotient, product;
    bhi_emit_assign(emitter, dtype, true, &quotient, "%s / %s", v[0].text, v[1].text);
    bhi_emit_assign(emitter, dtype, true, &product, "%s * floor(%s)", v[1].text, quotient.text);
    bhi_emit_assign(emitter, dtype, true, out_value, "%s - %s", v[0].text, product.text);
}

/* v[0] * (1 - v[2]) + v[1] * v[2] */
static void emit_mix(struct bhi_emitter *emitter, bh_dtype dtype, const struct bhi_value *v,
                     struct bhi_value *out_value) {
    const char *type = bhi_register_type(dtype);
    struct bhi_value rest, left, right;
    bhi_emit_assign(emitter, dtype, true, &rest, "%s(1) - %s", type, v[2].text);
    bhi_emit_assign(emitter, dtype, true, &left, "%s * %s", v[0].text, rest.text);
    bhi_emit_assign(emitter, dtype, true, &right, "%s * %s", v[1].text, v[2].text);
    bhi_emit_assign(emitter, dtype, true, out_value, "%s + %s", left.text, right.text);
}

/* t * t * (3 - 2 * t), t = clamp((v[2] - v[0]) / (v[1] - v[0]), 0, 1) */
static void emit_smoothstep(struct bhi_emitter *emitter, bh_dtype dtype, const struct bhi_value *v,
                            struct bhi_value *out_value) {
    const char *type = bhi_register_type(dtype);
    struct bhi_value over, span, t, twice, rest, square;
    bhi_emit_assign(emitter, dtype, true, &over, "%s - %s", v[2].text, v[0].text);
    bhi_emit_assign(emitter, dtype, true, &span, "%s - %s", v[1].text, v[0].text);
    bhi_emit_assign(emitter, dtype, true, &t, "clamp(%s / %s, %s(0), %s(1))", over.text, span.text,
                    type, type);
    bhi_emit_assign(emitter, dtype, true, &twice, "%s(2) * %s", type, t.text);
    bhi_emit_assign(emitter, dtype, true, &rest, "%s(3) - %s", type, twice.text);
    bhi_emit_assign(emitter, dtype, true, &square, "%s * %s", t.text, t.text);
    bhi_emit_assign(emitter, dtype, true, out_value, "%s * %s", square.text, rest.text);
}

static bool emit_formula(struct bhi_emitter *emitter, const char *name,
                         const struct bhi_value *arguments, struct bhi_value *out_value) {
    const uint32_t count = emitter->node->count;
    struct bhi_value v[3];
    bh_dtype dtype;
    if (!strcmp(name, "mix") && arguments[2].form == BHI_VALUE_TYPED &&
        arguments[2].dtype == BH_DTYPE_BOOL) {
        return bhi_emit_choose(emitter, &arguments[2], &arguments[1], &arguments[0], out_value);
    }
    if (!as_floats(emitter, arguments, count, v, &dtype)) {
        return false;
    }
    const char *type = bhi_register_type(dtype);
    if (!strcmp(name, "fract")) {
        bhi_emit_assign(emitter, dtype, true, out_value, "%s - floor(%s)", v[0].text, v[0].text);
    } else if (!strcmp(name, "step")) {
        bhi_emit_hidden(emitter, dtype, false, out_value, "%s < %s ? %s(0) : %s(1)", v[1].text,
                        v[0].text, type, type);
    } else if (!strcmp(name, "mod")) {
        emit_mod(emitter, dtype, v, out_value);
    } else if (!strcmp(name, "mix")) {
        emit_mix(emitter, dtype, v, out_value);
    } else {
        emit_smoothstep(emitter, dtype, v, out_value);
    }
    return true;
}

static bool emit_own(struct bhi_emitter *emitter, const char *name,
                     const struct bhi_value *arguments, struct bhi_value *out_value) {
    if (!strcmp(name, "abs")) {
        return emit_abs(emitter, arguments, out_value);
    }
    if (!strcmp(name, "sign")) {
        return emit_sign(emitter, arguments, out_value);
    }
    if (!strcmp(name, "isnan") || !strcmp(name, "isinf")) {
        return emit_is(emitter, name, arguments, out_value);
    }
    if (!strcmp(name, "min") || !strcmp(name, "max")) {
        return emit_least(emitter, name[1] == 'i', &arguments[0], &arguments[1], out_value);
    }
    if (!strcmp(name, "where")) {
        return bhi_emit_choose(emitter, &arguments[0], &arguments[1], &arguments[2], out_value);
    }
    if (!strcmp(name, "clamp")) {
        return emit_clamp(emitter, arguments, out_value);
    }
    if (!strcmp(name, "pow")) {
        return emit_pow(emitter, arguments, out_value);
    }
    return emit_formula(emitter, name, arguments, out_value);
}

static bool emit_call(struct bhi_emitter *emitter, int function, const struct bhi_value *arguments,
                      struct bhi_value *out_value) {
    const struct bhi_function *known = &bhi_functions[function];
    bh_dtype dtype;
    switch (known->kind) {
    case BHI_FUNCTION_MATH:
        return emit_math(emitter, known, arguments, out_value);
    case BHI_FUNCTION_ROUND:
        return emit_round(emitter, known, arguments, out_value);
    case BHI_FUNCTION_CAST:
        return bhi_dtype_find(known->name, strlen(known->name), &dtype) &&
               bhi_emit_convert(emitter, arguments, dtype, out_value);
    case BHI_FUNCTION_OWN:
    case BHI_FUNCTION_REDUCE: /* cannot be: the parser makes reductions of these */
        break;
    }
    return emit_own(emitter, known->name, arguments, out_value);
}

/* -- statements ---------------------------------------------------------------------------------
 */

static bool emit_node(struct bhi_emitter *emitter, const struct bhi_node *node,
                      const struct bhi_value *names, const struct bhi_value *values,
                      struct bhi_value *out) {
    const struct bhi_value *a = &values[node->child[0]], *b = &values[node->child[1]];
    struct bhi_value arguments[3];
    emitter->node = node;
    switch (node->kind) {
    case BHI_NODE_INTEGER:
        *out = (struct bhi_value){.form = BHI_VALUE_INTEGER, .integer = node->integer};
        return true;
    case BHI_NODE_REAL:
        *out = (struct bhi_value){.form = BHI_VALUE_REAL, .real = node->real};
        return true;
    case BHI_NODE_NAME:
        *out = names[node->name];
        return true;
    case BHI_NODE_UNARY:
        return bhi_emit_unary(emitter, node->op, a, out);
    case BHI_NODE_BINARY:
        return bhi_emit_binary(emitter, node->op, a, b, out);
    case BHI_NODE_CONDITIONAL:
        return bhi_emit_choose(emitter, a, b, &values[node->child[2]], out);
    case BHI_NODE_CALL:
    case BHI_NODE_REDUCTION:
        for (uint32_t i = 0; i < 3; i++) {
            arguments[i] = values[node->child[i]];
        }
        if (node->kind == BHI_NODE_REDUCTION) {
            return bhi_emit_reduction(emitter, &emitter->expression->reductions[node->op],
                                      arguments, out);
        }
        return emit_call(emitter, node->op, arguments, out);
    }
    return false;
}

static bool emit_all(struct bhi_emitter *emitter, struct bhi_value *names,
                     struct bhi_value *values) {
    const struct bhi_expression *e = emitter->expression;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const struct bhi_statement *statement = &e->statements[i];
        for (uint32_t k = statement->first; k <= statement->root; k++) {
            if (!emit_node(emitter, &e->nodes[k], names, values, &values[k])) {
                return false;
            }
        }
        names[statement->name] = values[statement->root];
    }
    return true;
}

bool bhi_emit_statements(struct bhi_emitter *emitter, const struct bhi_value *inputs,
                         struct bhi_value *outputs) {
    const struct bhi_expression *e = emitter->expression;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    struct bhi_value *values = calloc(e->node_count + 1, sizeof *values);
    bool good = c && values;
    if (good) {
        locale_t old = uselocale(c);
        memcpy(outputs, inputs, e->name_count * sizeof *inputs);
        good = emit_all(emitter, outputs, values);
        uselocale(old);
    } else {
        bhi_refuse_memory(emitter->complaint);
    }
    if (c) {
        freelocale(c);
    }
    free(values);
    return good;
}
