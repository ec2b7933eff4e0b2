/* The GLSL of a variant: the code around the body or the expression. */
#include "templates/signature.h"

#include <stdio.h>
#include <string.h>

#include "templates/emit.h"

/* Bits: the extensions that a shader needs. */
enum need {
    NEED_STORAGE_8 = 1,
    NEED_STORAGE_16 = 2,
    NEED_INT_8 = 4,
    NEED_INT_16 = 8,
    NEED_INT_64 = 16,
    NEED_FLOAT_16 = 32,
    NEED_FLOAT_64 = 64,
};

static const char *const extensions[] = {
    "GL_EXT_shader_8bit_storage",
    "GL_EXT_shader_16bit_storage",
    "GL_EXT_shader_explicit_arithmetic_types_int8",
    "GL_EXT_shader_explicit_arithmetic_types_int16",
    "GL_EXT_shader_explicit_arithmetic_types_int64",
    "GL_EXT_shader_explicit_arithmetic_types_float16",
    "GL_EXT_shader_explicit_arithmetic_types_float64",
};

/* For each bh_dtype: its GLSL name, the type of an array's element, and what the shader needs. */
static const struct {
    const char *native, *element, *plain_element;
    uint32_t storage, arithmetic;
} types[] = {
    [BH_DTYPE_F16] = {"float16_t", "float16_t", "uint16_t", NEED_STORAGE_16, NEED_FLOAT_16},
    [BH_DTYPE_F32] = {"float", "float", "float", 0, 0},
    [BH_DTYPE_F64] = {"double", "double", "double", 0, NEED_FLOAT_64},
    [BH_DTYPE_I8] = {"int8_t", "int8_t", "int8_t", NEED_STORAGE_8, NEED_INT_8},
    [BH_DTYPE_U8] = {"uint8_t", "uint8_t", "uint8_t", NEED_STORAGE_8, NEED_INT_8},
    [BH_DTYPE_I16] = {"int16_t", "int16_t", "int16_t", NEED_STORAGE_16, NEED_INT_16},
    [BH_DTYPE_U16] = {"uint16_t", "uint16_t", "uint16_t", NEED_STORAGE_16, NEED_INT_16},
    [BH_DTYPE_I32] = {"int", "int", "int", 0, 0},
    [BH_DTYPE_U32] = {"uint", "uint", "uint", 0, 0},
    [BH_DTYPE_I64] = {"int64_t", "int64_t", "int64_t", NEED_INT_64, NEED_INT_64},
    [BH_DTYPE_U64] = {"uint64_t", "uint64_t", "uint64_t", NEED_INT_64, NEED_INT_64},
    [BH_DTYPE_BOOL] = {"bool", "uint8_t", "uint8_t", NEED_STORAGE_8, 0},
    [BH_DTYPE_BF16] = {"float", "uint16_t", "uint16_t", NEED_STORAGE_16, 0},
    [BH_DTYPE_F8_E4M3] = {"float", "uint8_t", "uint8_t", NEED_STORAGE_8, 0},
    [BH_DTYPE_F8_E5M2] = {"float", "uint8_t", "uint8_t", NEED_STORAGE_8, 0},
};
_Static_assert(sizeof types / sizeof types[0] == BH_DTYPE_F8_E5M2 + 1, "one for each");

struct writer {
    const struct bhi_form *form;
    const struct bhi_variant *variant;
    struct bhi_pen *pen;
};

static bh_dtype dtype_of(const struct writer *w, uint32_t index) {
    return (bh_dtype)w->variant->dtypes[index];
}

/* The type of a value in the body: GLSL's own type, or the type in which expressions compute. */
static const char *value_type(const struct writer *w, uint32_t index) {
    return w->form->is_expression ? bhi_register_type(bhi_dtype_computed(dtype_of(w, index)))
                                  : types[dtype_of(w, index)].native;
}

static void write_head(const struct writer *w, uint32_t needs) {
    const struct bhi_form *form = w->form;
    const uint32_t *local = form->local_size;
    bhi_pen_put(w->pen, "#version 450\n");
    for (uint32_t i = 0; i < form->count; i++) {
        const bh_dtype dtype = dtype_of(w, i);
        if (form->parameters[i].role != BHI_ROLE_PUSH) {
            needs |= types[dtype].storage;
        }
        if (!form->is_expression) {
            needs |= types[dtype].arithmetic;
        }
    }
    for (uint32_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        if (needs & 1u << i) {
            bhi_pen_put(w->pen, "#extension %s : require\n", extensions[i]);
        }
    }
    if (!form->is_expression) {
        bhi_pen_put(w->pen, "#extension GL_GOOGLE_cpp_style_line_directive : require\n");
    }
    if (form->grid) {
        bhi_pen_put(w->pen, "layout(local_size_x = %u, local_size_y = %u, local_size_z = %u) in;\n",
                    local[0], local[1], local[2]);
    } else {
        bhi_pen_put(w->pen, "layout(local_size_x = %d) in;\n", BHI_LOCAL_SIZE);
    }
}

static const char *array_prefix(const struct bhi_form *form) {
    return form->is_expression ? "a" : form->grid ? "" : "bh_a_";
}

/* The name of an array: a0, a1, ... in an expression's shader, the parameter's name in a grid's. */
static const char *array_name(const struct writer *w, uint32_t index, char out[80]) {
    if (w->form->is_expression) {
        snprintf(out, 80, "%s%u", array_prefix(w->form), index);
    } else {
        snprintf(out, 80, "%s%s", array_prefix(w->form), w->form->parameters[index].name);
    }
    return out;
}

/* A multiplication and two shifts, because a division takes a third of the time of a sum of arrays. */
static const char quotient_text[] = "uint bh_quotient(uint v, uint size, uint factor) {\n"
                                    "    uint high, low;\n"
                                    "    umulExtended(v, factor, high, low);\n"
                                    "    return (v - high >> 1) + high >> findMSB(size - 1u);\n"
                                    "}\n";

static void write_interface(const struct writer *w, const struct bhi_constants *push) {
    const struct bhi_form *form = w->form;
    uint32_t binding = 0;
    char name[80];
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        const bh_dtype dtype = dtype_of(w, i);
        if (parameter->role == BHI_ROLE_PUSH) {
            continue;
        }
        bhi_pen_put(w->pen, "layout(set = 0, binding = %u, std430) %sbuffer bh_b%u { %s %s[]; };",
                    binding++,
                    parameter->role == BHI_ROLE_IN    ? "readonly "
                    : parameter->role == BHI_ROLE_OUT ? "writeonly "
                                                      : "",
                    i, form->is_expression ? types[dtype].plain_element : types[dtype].element,
                    array_name(w, i, name));
        bhi_pen_put(w->pen, form->is_expression ? " // %s\n" : "\n", parameter->name);
    }
    bhi_pen_put(w->pen,
                "layout(push_constant, std430) uniform bh_push_block { uint bh_push[%u]; };\n",
                push->count);
    if (w->variant->axes > 1) {
        bhi_pen_put(w->pen, "%s", quotient_text);
    }
    for (int small = BHI_DTYPE_COUNT; small < BHI_ELEMENT_COUNT; small++) {
        if (memchr(w->variant->dtypes, bhi_dtypes[small], form->count)) {
            bhi_emit_small_float(w->pen, bhi_dtypes[small]);
        }
    }
}

/* Whether an element of the array is not at the index of the invocation. */
static bool is_stretched(const struct writer *w, uint32_t index) {
    return w->form->parameters[index].role == BHI_ROLE_IN &&
           (w->variant->reduces || w->variant->has[index] != (1u << w->variant->axes) - 1);
}

/* Writes one element of an array as a value. */
static void put_load(const struct writer *w, uint32_t index) {
    const bh_dtype dtype = dtype_of(w, index);
    const bool plain = w->form->is_expression;
    char name[80], at[112], place[16] = "i";
    if (is_stretched(w, index)) {
        snprintf(place, sizeof place, w->variant->has[index] ? "bh_j%u" : "0", index);
    }
    snprintf(at, sizeof at, "%s[%s]", array_name(w, index, name), place);
    if (dtype == BH_DTYPE_BOOL) {
        bhi_pen_put(w->pen, "uint(%s) != 0u", at);
    } else if (bhi_dtype_is_small(dtype) || (dtype == BH_DTYPE_F16 && plain)) {
        bhi_pen_put(w->pen, "%s_value(uint(%s))", bhi_dtype_name(dtype), at);
    } else if (plain) {
        bhi_pen_put(w->pen, "%s(%s)", value_type(w, index), at);
    } else {
        bhi_pen_put(w->pen, "%s", at);
    }
}

static void put_store(const struct writer *w, uint32_t index, const char *value) {
    const bh_dtype dtype = dtype_of(w, index);
    const bool plain = w->form->is_expression;
    char name[80];
    bhi_pen_put(w->pen, "    %s[i] = ", array_name(w, index, name));
    if (dtype == BH_DTYPE_BOOL) {
        bhi_pen_put(w->pen, "uint8_t(%s ? 1 : 0);\n", value);
    } else if (bhi_dtype_is_small(dtype) || (dtype == BH_DTYPE_F16 && plain)) {
        bhi_pen_put(w->pen, "%s(%s_bits(%s));\n", types[dtype].plain_element, bhi_dtype_name(dtype),
                    value);
    } else if (plain) {
        bhi_pen_put(w->pen, "%s(%s);\n", types[dtype].plain_element, value);
    } else {
        bhi_pen_put(w->pen, "%s;\n", value);
    }
}

enum { NUMBERS = 1, ARRAYS = 2 };

/* Declares the values that the body starts with: |of| which parameters. */
static void write_locals(const struct writer *w, int of) {
    const struct bhi_form *form = w->form;
    char text[BHI_CONSTANT_TEXT];
    uint32_t word = bhi_variant_numbers(w->variant);
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        const bool push = parameter->role == BHI_ROLE_PUSH;
        if (push ? !(of & NUMBERS)
                 : !(of & ARRAYS) || form->grid ||
                       (form->is_expression && !bhi_role_reads(parameter->role))) {
            continue;
        }
        bhi_pen_put(w->pen, "    %s ", value_type(w, i));
        if (form->is_expression) {
            bhi_pen_put(w->pen, "p%u = ", i);
        } else {
            bhi_pen_put(w->pen, "%s = ", parameter->name);
        }
        if (push) {
            bhi_pen_put(w->pen, "%s",
                        bhi_constant_text(dtype_of(w, i), value_type(w, i), word, NULL, text));
            word += bhi_constant_words(dtype_of(w, i));
        } else if (bhi_role_reads(parameter->role)) {
            put_load(w, i);
        } else {
            bhi_pen_put(w->pen, "%s(0)", value_type(w, i));
        }
        bhi_pen_put(w->pen, form->is_expression ? "; // %s\n" : ";\n", parameter->name);
    }
}

/* Declares the coordinates, along those |axes| that are bits there, of the element with index |from|
 * among them. */
static void write_coordinates(const struct writer *w, uint32_t axes, const char *from) {
    char rest[16];
    snprintf(rest, sizeof rest, "%s", from);
    for (uint32_t k = BHI_MAX_AXES; k-- > 0;) {
        const uint32_t at = bhi_constants_axis(k);
        if (!(axes >> k & 1)) {
            continue;
        }
        if (!(axes & ((1u << k) - 1))) { /* the outermost of them */
            bhi_pen_put(w->pen, "    const uint bh_c%u = %s;\n", k, rest);
            continue;
        }
        bhi_pen_put(w->pen,
                    "    const uint bh_q%u = bh_quotient(%s, bh_push[%u], bh_push[%u]);\n"
                    "    const uint bh_c%u = %s - bh_q%u * bh_push[%u];\n",
                    k, rest, at, at + 1, k, rest, k, at);
        snprintf(rest, sizeof rest, "bh_q%u", k);
    }
}

/* Declares the index in each input that is not read at the index of the invocation, from the coordinates
 * of an element. */
static void write_places(const struct writer *w) {
    const uint32_t axes = w->variant->axes;
    for (uint32_t i = 0; i < w->form->count; i++) {
        const uint32_t has = w->variant->has[i];
        if (!is_stretched(w, i) || !has) {
            continue;
        }
        uint32_t k = (uint32_t)__builtin_ctz(has);
        bhi_pen_put(w->pen, "    uint bh_j%u = bh_c%u;\n", i, k);
        while (++k < axes) {
            if (has >> k & 1) {
                bhi_pen_put(w->pen, "    bh_j%u = bh_j%u * bh_push[%u] + bh_c%u;\n", i, i,
                            bhi_constants_axis(k), k);
            }
        }
    }
}

static void write_index(const struct writer *w) {
    bhi_pen_put(w->pen,
                "    const uint i = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * "
                "%uu + gl_LocalInvocationID.x;\n"
                "    const uint n = bh_push[0];\n"
                "    if (i >= n) return;\n",
                (unsigned)BHI_LOCAL_SIZE);
    if (w->variant->axes > 1 && !w->variant->reduces) {
        write_coordinates(w, (1u << w->variant->axes) - 1, "i");
        write_places(w);
    }
}

/* -- reductions --------------------------------------------------------------------------------- */

/* Finds the invocation's part of its result, from bh_k to bh_end in steps of bh_width. */
static void write_walk(const struct writer *w, const struct bhi_reduction *r, uint32_t kept) {
    const uint32_t at = bhi_variant_walk(w->variant);
    bhi_pen_put(w->pen,
                "    const uint bh_length = bh_push[%u], bh_parts = bh_push[%u];\n"
                "    const uint bh_width = bh_push[%u], bh_span = bh_push[%u];\n",
                at + BHI_WALK_LENGTH, at + BHI_WALK_PARTS, at + BHI_WALK_WIDTH, at + BHI_WALK_SPAN);
    if (r->in_front) {
        bhi_pen_put(w->pen, "    const uint bh_rows = n / bh_parts, bh_part = i / bh_rows;\n"
                            "    const uint bh_row = i - bh_part * bh_rows;\n");
    } else {
        bhi_pen_put(w->pen, "    const uint bh_row = i / bh_parts;\n"
                            "    const uint bh_part = i - bh_row * bh_parts;\n");
    }
    bhi_pen_put(
        w->pen,
        "    const uint bh_begin = bh_part / bh_width * bh_span;\n"
        "    const uint bh_end = bh_begin < bh_length ? bh_begin + min(bh_span, bh_length - "
        "bh_begin) : 0u;\n"
        "    uint bh_k = bh_begin + bh_part %% bh_width;\n");
    write_coordinates(w, kept, "bh_row");
}

/* The inner loop is short, so that it need not be asked to stop (docs/kernels.md). */
static void write_reduction(const struct writer *w, const struct bhi_emitter *emitter,
                            const struct bhi_value *results) {
    const struct bhi_accumulator *a = &emitter->accumulator;
    const bool blocks = bhi_accumulator_blocks(a);
    uint32_t output = 0;
    while (!bhi_role_writes(w->form->parameters[output].role)) {
        output++;
    }
    const uint32_t all = (1u << w->variant->axes) - 1, kept = w->variant->has[output] & all;
    bhi_pen_put(w->pen, "void main() {\n");
    write_index(w);
    bhi_emit_zero(w->pen, emitter->helpers);
    write_locals(w, NUMBERS);
    write_walk(w, bhi_expression_reduction(&w->form->expression), kept);
    bhi_accumulator_declare(a, w->pen, "bh_all");
    bhi_pen_put(w->pen, "    while (bh_k < bh_end) {\n");
    if (blocks) {
        bhi_accumulator_declare(a, w->pen, "bh_block");
    }
    bhi_pen_put(w->pen, "    for (uint bh_s = 0u; bh_s < 16u; bh_s++) {\n"
                        "    if (bh_k >= bh_end) break;\n");
    write_coordinates(w, all & ~kept, "bh_k");
    write_places(w);
    write_locals(w, ARRAYS);
    bhi_pen_put(w->pen, "%s", emitter->pen->text ? emitter->pen->text : "");
    bhi_accumulator_add(a, w->pen, blocks ? "bh_block" : "bh_all", results[output].text);
    bhi_pen_put(w->pen, "    bh_k += bh_width;\n    }\n");
    if (blocks) {
        bhi_accumulator_add(a, w->pen, "bh_all", "bh_block");
    }
    bhi_pen_put(w->pen, "    }\n");
    bhi_accumulator_finish(a, w->pen, "bh_all", "bh_result");
    put_store(w, output, "bh_result");
    bhi_pen_put(w->pen, "}\n");
}

static void write_expression(const struct writer *w, const struct bhi_emitter *emitter,
                             const struct bhi_value *results) {
    bhi_pen_put(w->pen, "void main() {\n");
    write_index(w);
    bhi_emit_zero(w->pen, emitter->helpers);
    write_locals(w, NUMBERS | ARRAYS);
    bhi_pen_put(w->pen, "%s", emitter->pen->text ? emitter->pen->text : "");
    for (uint32_t i = 0; i < w->form->count; i++) {
        if (bhi_role_writes(w->form->parameters[i].role)) {
            put_store(w, i, results[i].text);
        }
    }
    bhi_pen_put(w->pen, "}\n");
}

static void write_types(const struct writer *w) {
    for (uint32_t i = 0; i < w->form->count; i++) {
        const char *variable = w->form->parameters[i].variable;
        bool first = *variable != 0;
        for (uint32_t k = 0; k < i; k++) {
            first &= strcmp(w->form->parameters[k].variable, variable) != 0;
        }
        if (first) {
            bhi_pen_put(w->pen, "#define %s %s\n", variable, value_type(w, i));
        }
    }
    if (w->form->declarations) {
        bhi_pen_put(w->pen, "#line 1 \"%s declarations\"\n%s\n#line 1 \"generated\"\n",
                    w->form->name, w->form->declarations);
    }
}

/* Writes the body as a function of one element's values. The body may return early; what it has
 * assigned is stored all the same. */
static void write_body(const struct writer *w) {
    const struct bhi_form *form = w->form;
    bhi_pen_put(w->pen, "void bh_body(const uint i, const uint n");
    for (uint32_t i = 0; i < form->count; i++) {
        bhi_pen_put(w->pen, ", %s%s %s",
                    bhi_role_writes(form->parameters[i].role) ? "inout " : "const ",
                    value_type(w, i), form->parameters[i].name);
    }
    bhi_pen_put(w->pen, ") {\n#line 1 \"%s\"\n%s\n#line 1 \"generated\"\n}\nvoid main() {\n",
                form->name, form->body);
    write_index(w);
    write_locals(w, NUMBERS | ARRAYS);
    bhi_pen_put(w->pen, "    bh_body(i, n");
    for (uint32_t i = 0; i < form->count; i++) {
        bhi_pen_put(w->pen, ", %s", form->parameters[i].name);
    }
    bhi_pen_put(w->pen, ");\n");
    for (uint32_t i = 0; i < form->count; i++) {
        if (bhi_role_writes(form->parameters[i].role)) {
            put_store(w, i, form->parameters[i].name);
        }
    }
    bhi_pen_put(w->pen, "}\n");
}

static void write_grid(const struct writer *w) {
    bhi_pen_put(w->pen, "void main() {\n");
    write_locals(w, NUMBERS);
    bhi_pen_put(w->pen, "#line 1 \"%s\"\n%s\n#line 1 \"generated\"\n}\n", w->form->name,
                w->form->body);
}

bool bhi_form_write(const struct bhi_form *form, const struct bhi_variant *variant,
                    struct bhi_pen *pen, struct bhi_complaint *complaint) {
    struct bhi_pen statements = {0};
    struct bhi_value results[BHI_MAX_PARAMETERS];
    struct bhi_constants push = bhi_form_constants(form, variant);
    struct writer w = {form, variant, pen};
    if (form->is_expression) {
        struct bhi_emitter emitter = {.expression = &form->expression,
                                      .pen = &statements,
                                      .push = &push,
                                      .complaint = complaint};
        if (!bhi_form_emit(form, variant, &emitter, results)) {
            bhi_pen_fini(&statements);
            return false;
        }
        for (uint32_t i = 0; i < form->count; i++) {
            if (variant->dtypes[i] == BH_DTYPE_F16 && form->parameters[i].role != BHI_ROLE_PUSH) {
                emitter.helpers |= BHI_HELPER_HALF;
            }
            emitter.wide |=
                variant->dtypes[i] == BH_DTYPE_I64 || variant->dtypes[i] == BH_DTYPE_U64;
        }
        write_head(&w, emitter.wide ? NEED_INT_64 : 0);
        write_interface(&w, &push);
        bhi_emit_helpers(pen, emitter.helpers);
        if (variant->reduces) {
            write_reduction(&w, &emitter, results);
        } else {
            write_expression(&w, &emitter, results);
        }
        pen->failed |= statements.failed;
    } else {
        write_head(&w, 0);
        write_interface(&w, &push);
        write_types(&w);
        if (form->grid) {
            write_grid(&w);
        } else {
            write_body(&w);
        }
    }
    bhi_pen_fini(&statements);
    return pen->failed ? bhi_refuse_memory(complaint) : true;
}
