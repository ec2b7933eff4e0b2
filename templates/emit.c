#include "templates/emit.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "templates/calls.h"
#include "templates/operators.h"

/* -- helpers ------------------------------------------------------------------------------------
 */

static const char half_text[] =
    "/* IEEE 754 binary16, in the low bits, and floats: to nearest even. */\n"
    "uint half_bits(float v) {\n"
    "    uint f = floatBitsToUint(v), s = f >> 16 & 0x8000u, m = f & 0x7fffffffu;\n"
    "    if (m > 0x7f800000u) return s | 0x7e00u;\n"
    "    if (m >= 0x477ff000u) return s | 0x7c00u;\n"
    "    if (m < 0x38800000u) return s | uint(roundEven(uintBitsToFloat(m) * 16777216.0));\n"
    "    return s | m + 0xfffu + (m >> 13 & 1u) - 0x38000000u >> 13;\n"
    "}\n"
    "float half_value(uint h) {\n"
    "    uint s = (h & 0x8000u) << 16, m = h & 0x7fffu;\n"
    "    if (m >= 0x7c00u) return uintBitsToFloat(s | 0x7f800000u | (m & 0x3ffu) << 13);\n"
    "    if (m < 0x400u) return uintBitsToFloat(s | floatBitsToUint(float(m) / 16777216.0));\n"
    "    return uintBitsToFloat(s | (m << 13) + 0x38000000u);\n"
    "}\n";

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
        bhi_pen_put(pen, "%s", half_text);
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
        for (uint32_t i = 0; i < 3; i++) {
            arguments[i] = values[node->child[i]];
        }
        return bhi_emit_call(emitter, node->op, arguments, out);
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
