#include "templates/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "templates/emit.h"
#include "templates/lexer.h"

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

/* Of these an array has the bits, and the values are floats. */
static bool is_small(bh_dtype dtype) {
    return bhi_dtype_is_float(dtype) && !bhi_dtype_is_known(dtype);
}

/* The type of the values of an array. */
static bh_dtype computed(bh_dtype dtype) {
    return is_small(dtype) ? BH_DTYPE_F32 : dtype;
}

const char *bhi_role_name(enum bhi_role role) {
    return role == BHI_ROLE_IN      ? "input"
           : role == BHI_ROLE_OUT   ? "output"
           : role == BHI_ROLE_INOUT ? "input and output"
                                    : "number";
}

static bool reads(enum bhi_role role) {
    return role == BHI_ROLE_IN || role == BHI_ROLE_INOUT || role == BHI_ROLE_PUSH;
}

static bool writes(enum bhi_role role) {
    return role == BHI_ROLE_OUT || role == BHI_ROLE_INOUT;
}

/* -- checks -------------------------------------------------------------------------------------
 */

static bool is_identifier(const char *text) {
    if (!*text || (*text >= '0' && *text <= '9')) {
        return false;
    }
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] ==
           0;
}

static const struct bhi_name *find_name(const struct bhi_expression *e, const char *text) {
    for (uint32_t i = 0; i < e->name_count; i++) {
        if (!strcmp(e->names[i].text, text)) {
            return &e->names[i];
        }
    }
    return NULL;
}

static const struct bhi_parameter *find_parameter(const struct bhi_form *form, const char *name) {
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        if (!strcmp(parameter->name, name) && reads(parameter->role)) {
            return parameter;
        }
    }
    return NULL;
}

static const struct {
    const char *name;
    double value;
} constants[] = {{"inf", (double)__builtin_inff()},
                 {"nan", (double)__builtin_nanf("")},
                 {"pi", 3.14159265358979323846},
                 {"true", 1},
                 {"false", 0}};
enum { CONSTANTS = sizeof constants / sizeof constants[0], TRUE = 3 };

static int find_constant(const char *name) {
    for (int i = 0; i < CONSTANTS; i++) {
        if (!strcmp(constants[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* Names all that are read and not given, at the place of the first one. */
static bool check_inputs(const struct bhi_form *form, struct bhi_complaint *complaint) {
    const struct bhi_expression *e = &form->expression;
    const struct bhi_name *first = NULL;
    char others[300] = "";
    for (uint32_t i = 0; i < e->name_count; i++) {
        const struct bhi_name *name = &e->names[i];
        const size_t used = strlen(others);
        if (!name->read || find_constant(name->text) >= 0 || find_parameter(form, name->text)) {
            continue;
        }
        if (first && used + strlen(name->text) + sizeof ", ''" < sizeof others) {
            snprintf(others + used, sizeof others - used, ", '%s'", name->text);
        }
        first = first ? first : name;
    }
    return !first || bhi_refuse_at(e->source, first->at, complaint, "there %s no input%s '%s'%s",
                                   *others ? "are" : "is", *others ? "s" : "", first->text, others);
}

static bool check_expression(const struct bhi_form *form, struct bhi_complaint *complaint) {
    const struct bhi_expression *e = &form->expression;
    if (!check_inputs(form, complaint)) {
        return false;
    }
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        const struct bhi_name *name = find_name(e, parameter->name);
        if (reads(parameter->role) && !(name && name->read)) {
            return bhi_refuse(complaint, "%s '%s' is not used by the expression",
                              bhi_role_name(parameter->role), parameter->name);
        }
        if (writes(parameter->role) && !(name && name->assigned)) {
            return bhi_refuse(complaint, "output '%s' is never assigned", parameter->name);
        }
    }
    return true;
}

bool bhi_form_check(const struct bhi_form *form, struct bhi_complaint *complaint) {
    bool output = false;
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        output |= writes(parameter->role);
        if (!is_identifier(parameter->name) ||
            (!form->is_expression &&
             (!strncmp(parameter->name, "bh_", 3) || !strncmp(parameter->name, "gl_", 3) ||
              (!form->grid && (!strcmp(parameter->name, "i") || !strcmp(parameter->name, "n")))))) {
            return bhi_refuse(complaint, "'%s' cannot be a parameter's name", parameter->name);
        }
        if (*parameter->variable && !is_identifier(parameter->variable)) {
            return bhi_refuse(complaint, "'%s' is neither a type nor a name for one",
                              parameter->variable);
        }
        /* In an expression a name may be an input and an output: reading it gives the old value. */
        for (uint32_t k = 0; k < i; k++) {
            const struct bhi_parameter *other = &form->parameters[k];
            const bool pair = form->is_expression &&
                              !(reads(other->role) && reads(parameter->role)) &&
                              !(writes(other->role) && writes(parameter->role));
            if (!strcmp(parameter->name, other->name) && !pair) {
                return bhi_refuse(complaint, "'%s' is given twice", parameter->name);
            }
        }
    }
    if (!output) {
        return bhi_refuse(complaint, "there is no output");
    }
    return !form->is_expression || check_expression(form, complaint);
}

void bhi_form_fini(struct bhi_form *form) {
    bhi_expression_fini(&form->expression);
    free(form->body);
    free(form->declarations);
    form->body = form->declarations = NULL;
}

/* -- types --------------------------------------------------------------------------------------
 */

/* Sets the initial values of the expression's names: variables p0, p1, ... for the parameters. */
static void bind_inputs(const struct bhi_form *form, const struct bhi_variant *variant,
                        struct bhi_value *values) {
    const struct bhi_expression *e = &form->expression;
    for (uint32_t i = 0; i < e->name_count; i++) {
        const struct bhi_parameter *parameter = find_parameter(form, e->names[i].text);
        const int constant = find_constant(e->names[i].text);
        values[i] = (struct bhi_value){0};
        if (parameter) {
            const uint32_t index = (uint32_t)(parameter - form->parameters);
            values[i].dtype = computed((bh_dtype)variant->dtypes[index]);
            snprintf(values[i].text, sizeof values[i].text, "p%u", index);
        } else if (constant >= TRUE) {
            values[i].dtype = BH_DTYPE_BOOL;
            snprintf(values[i].text, sizeof values[i].text, "%s", constants[constant].name);
        } else if (constant >= 0) {
            values[i].form = BHI_VALUE_REAL;
            values[i].real = constants[constant].value;
        }
    }
}

/* Room for what comes before the numbers of the expression. */
static struct bhi_constants begin_constants(const struct bhi_form *form,
                                            const struct bhi_variant *variant) {
    struct bhi_constants push = {.count = 1};
    for (uint32_t i = 0; i < form->count; i++) {
        if (form->parameters[i].role == BHI_ROLE_PUSH) {
            push.count += bhi_constant_words((bh_dtype)variant->dtypes[i]);
        }
    }
    return push;
}

/* Emits the expression's statements; |results| gets the final value of each output. */
static bool emit_expression(const struct bhi_form *form, const struct bhi_variant *variant,
                            struct bhi_emitter *emitter, struct bhi_value *results) {
    const struct bhi_expression *e = &form->expression;
    struct bhi_value *names = calloc(2 * BHI_EXPRESSION_NAMES, sizeof *names);
    struct bhi_value *ends = names + BHI_EXPRESSION_NAMES;
    if (!names) {
        return bhi_refuse_memory(emitter->complaint);
    }
    bind_inputs(form, variant, names);
    bool good = bhi_emit_statements(emitter, names, ends);
    for (uint32_t i = 0; good && i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        if (!writes(parameter->role)) {
            continue;
        }
        const struct bhi_value *end = &ends[find_name(e, parameter->name) - e->names];
        good = bhi_emit_convert(emitter, end, bhi_value_dtype(end), &results[i]);
    }
    free(names);
    return good;
}

static bool infer_expression(const struct bhi_form *form, struct bhi_variant *variant,
                             struct bhi_constants *push, struct bhi_complaint *complaint) {
    struct bhi_pen pen = {0};
    struct bhi_value results[BHI_MAX_PARAMETERS];
    struct bhi_emitter emitter = {
        .expression = &form->expression, .pen = &pen, .push = push, .complaint = complaint};
    bool good = emit_expression(form, variant, &emitter, results);
    bhi_pen_fini(&pen);
    for (uint32_t i = 0; good && i < form->count; i++) {
        if (!writes(form->parameters[i].role)) {
            continue;
        }
        const bh_dtype given = (bh_dtype)variant->dtypes[i];
        const bh_dtype wanted = form->parameters[i].dtype;
        const bh_dtype is = results[i].dtype, must = given != BH_DTYPE_NONE ? given : wanted;
        if (must != BH_DTYPE_NONE && wanted != BH_DTYPE_NONE && must != wanted) {
            good =
                bhi_refuse(complaint, "output '%s' is %s, but must be %s", form->parameters[i].name,
                           bhi_dtype_name(given), bhi_dtype_name(wanted));
        } else if (must != BH_DTYPE_NONE && computed(must) != is) {
            good = bhi_refuse(complaint, "output '%s' must be %s, but is %s: write %s(...)",
                              form->parameters[i].name, bhi_dtype_name(must), bhi_dtype_name(is),
                              bhi_dtype_name(computed(must)));
        }
        variant->dtypes[i] = (uint8_t)(is_small(must) ? must : is);
    }
    return good;
}

bool bhi_form_infer(const struct bhi_form *form, struct bhi_variant *variant,
                    struct bhi_constants *out_constants, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        if (form->is_expression && parameter->role == BHI_ROLE_OUT) {
            continue;
        }
        bh_dtype wanted = parameter->dtype, given = (bh_dtype)variant->dtypes[i];
        const char *like = NULL;
        for (uint32_t k = 0; *parameter->variable && k < form->count; k++) {
            if (k != i && variant->dtypes[k] != BH_DTYPE_NONE &&
                !strcmp(form->parameters[k].variable, parameter->variable)) {
                wanted = (bh_dtype)variant->dtypes[k];
                like = form->parameters[k].name;
            }
        }
        if (given == BH_DTYPE_NONE) {
            given = wanted;
        }
        if (given == BH_DTYPE_NONE) {
            return bhi_refuse(complaint, "the type of %s '%s' is not known",
                              bhi_role_name(parameter->role), parameter->name);
        }
        if (wanted != BH_DTYPE_NONE && given != wanted) {
            return bhi_refuse(complaint, "%s '%s' is %s, but must be %s%s%s",
                              bhi_role_name(parameter->role), parameter->name,
                              bhi_dtype_name(given), bhi_dtype_name(wanted), like ? ", as " : "",
                              like ? like : "");
        }
        variant->dtypes[i] = (uint8_t)given;
    }
    *out_constants = begin_constants(form, variant);
    return !form->is_expression || infer_expression(form, variant, out_constants, complaint);
}

/* -- text ---------------------------------------------------------------------------------------
 */

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
    return w->form->is_expression ? bhi_register_type(computed(dtype_of(w, index)))
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
    for (int small = BHI_DTYPE_COUNT; small < BHI_ELEMENT_COUNT; small++) {
        if (memchr(w->variant->dtypes, bhi_dtypes[small], form->count)) {
            bhi_emit_small_float(w->pen, bhi_dtypes[small]);
        }
    }
}

/* Writes one element of an array as a value. */
static void put_load(const struct writer *w, uint32_t index) {
    const bh_dtype dtype = dtype_of(w, index);
    const bool plain = w->form->is_expression;
    char name[80], at[96];
    snprintf(at, sizeof at, "%s[%s]", array_name(w, index, name),
             w->variant->singles[index] ? "0" : "i");
    if (dtype == BH_DTYPE_BOOL) {
        bhi_pen_put(w->pen, "uint(%s) != 0u", at);
    } else if (is_small(dtype) || (dtype == BH_DTYPE_F16 && plain)) {
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
    } else if (is_small(dtype) || (dtype == BH_DTYPE_F16 && plain)) {
        bhi_pen_put(w->pen, "%s(%s_bits(%s));\n", types[dtype].plain_element, bhi_dtype_name(dtype),
                    value);
    } else if (plain) {
        bhi_pen_put(w->pen, "%s(%s);\n", types[dtype].plain_element, value);
    } else {
        bhi_pen_put(w->pen, "%s;\n", value);
    }
}

/* Declares the values that the body starts with. */
static void write_locals(const struct writer *w) {
    const struct bhi_form *form = w->form;
    char text[BHI_CONSTANT_TEXT];
    uint32_t word = 1;
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        const bool push = parameter->role == BHI_ROLE_PUSH;
        if (push ? false : form->grid || (form->is_expression && !reads(parameter->role))) {
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
        } else if (reads(parameter->role)) {
            put_load(w, i);
        } else {
            bhi_pen_put(w->pen, "%s(0)", value_type(w, i));
        }
        bhi_pen_put(w->pen, form->is_expression ? "; // %s\n" : ";\n", parameter->name);
    }
}

static void write_index(const struct writer *w) {
    bhi_pen_put(w->pen,
                "    const uint i = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * "
                "%uu + gl_LocalInvocationID.x;\n"
                "    const uint n = bh_push[0];\n"
                "    if (i >= n) return;\n",
                (unsigned)BHI_LOCAL_SIZE);
}

static void write_expression(const struct writer *w, const struct bhi_emitter *emitter,
                             const struct bhi_value *results) {
    bhi_pen_put(w->pen, "void main() {\n");
    write_index(w);
    bhi_emit_zero(w->pen, emitter->helpers);
    write_locals(w);
    bhi_pen_put(w->pen, "%s", emitter->pen->text ? emitter->pen->text : "");
    for (uint32_t i = 0; i < w->form->count; i++) {
        if (writes(w->form->parameters[i].role)) {
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
        bhi_pen_put(w->pen, ", %s%s %s", writes(form->parameters[i].role) ? "inout " : "const ",
                    value_type(w, i), form->parameters[i].name);
    }
    bhi_pen_put(w->pen, ") {\n#line 1 \"%s\"\n%s\n#line 1 \"generated\"\n}\nvoid main() {\n",
                form->name, form->body);
    write_index(w);
    write_locals(w);
    bhi_pen_put(w->pen, "    bh_body(i, n");
    for (uint32_t i = 0; i < form->count; i++) {
        bhi_pen_put(w->pen, ", %s", form->parameters[i].name);
    }
    bhi_pen_put(w->pen, ");\n");
    for (uint32_t i = 0; i < form->count; i++) {
        if (writes(form->parameters[i].role)) {
            put_store(w, i, form->parameters[i].name);
        }
    }
    bhi_pen_put(w->pen, "}\n");
}

static void write_grid(const struct writer *w) {
    bhi_pen_put(w->pen, "void main() {\n");
    write_locals(w);
    bhi_pen_put(w->pen, "#line 1 \"%s\"\n%s\n#line 1 \"generated\"\n}\n", w->form->name,
                w->form->body);
}

bool bhi_form_write(const struct bhi_form *form, const struct bhi_variant *variant,
                    struct bhi_pen *pen, struct bhi_complaint *complaint) {
    struct bhi_pen statements = {0};
    struct bhi_value results[BHI_MAX_PARAMETERS];
    struct bhi_constants push = begin_constants(form, variant);
    struct writer w = {form, variant, pen};
    if (form->is_expression) {
        struct bhi_emitter emitter = {.expression = &form->expression,
                                      .pen = &statements,
                                      .push = &push,
                                      .complaint = complaint};
        if (!emit_expression(form, variant, &emitter, results)) {
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
        write_expression(&w, &emitter, results);
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
