#include "templates/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "templates/emit.h"
#include "templates/lexer.h"

const char *bhi_role_name(enum bhi_role role) {
    return role == BHI_ROLE_IN      ? "input"
           : role == BHI_ROLE_OUT   ? "output"
           : role == BHI_ROLE_INOUT ? "input and output"
                                    : "number";
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
        if (!strcmp(parameter->name, name) && bhi_role_reads(parameter->role)) {
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
        if (bhi_role_reads(parameter->role) && !(name && name->read)) {
            return bhi_refuse(complaint, "%s '%s' is not used by the expression",
                              bhi_role_name(parameter->role), parameter->name);
        }
        if (bhi_role_writes(parameter->role) && !(name && name->assigned)) {
            return bhi_refuse(complaint, "output '%s' is never assigned", parameter->name);
        }
    }
    return true;
}

/* A template is one kernel. So a reduction is the last thing that it computes, and the only one. */
static bool check_reductions(const struct bhi_form *form, struct bhi_complaint *complaint) {
    const struct bhi_expression *e = &form->expression;
    const struct bhi_statement *last = &e->statements[e->statement_count - 1];
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < form->count; i++) {
        outputs += bhi_role_writes(form->parameters[i].role);
    }
    for (uint32_t i = 0; i < e->reduction_count; i++) {
        const struct bhi_reduction *r = &e->reductions[i];
        if (r->node != last->root || outputs != 1) {
            return bhi_refuse_at(e->source, e->nodes[r->node].at, complaint,
                                 "a template is one kernel: of %s it can be NAME = %s(...), as its "
                                 "last statement and only output; `bulkhead eval` and Stream.eval "
                                 "plan several kernels",
                                 bhi_functions[r->function].name, bhi_functions[r->function].name);
        }
    }
    return true;
}

bool bhi_form_check(const struct bhi_form *form, struct bhi_complaint *complaint) {
    bool output = false;
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        output |= bhi_role_writes(parameter->role);
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
                              !(bhi_role_reads(other->role) && bhi_role_reads(parameter->role)) &&
                              !(bhi_role_writes(other->role) && bhi_role_writes(parameter->role));
            if (!strcmp(parameter->name, other->name) && !pair) {
                return bhi_refuse(complaint, "'%s' is given twice", parameter->name);
            }
        }
    }
    if (!output) {
        return bhi_refuse(complaint, "there is no output");
    }
    return !form->is_expression || (check_expression(form, complaint) &&
                                    (form->planned || check_reductions(form, complaint)));
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
            values[i].dtype = bhi_dtype_computed((bh_dtype)variant->dtypes[index]);
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

struct bhi_constants bhi_form_constants(const struct bhi_form *form,
                                        const struct bhi_variant *variant) {
    struct bhi_constants push = {.count = bhi_variant_numbers(variant)};
    for (uint32_t i = 0; i < form->count; i++) {
        if (form->parameters[i].role == BHI_ROLE_PUSH) {
            push.count += bhi_constant_words((bh_dtype)variant->dtypes[i]);
        }
    }
    return push;
}

bool bhi_form_emit(const struct bhi_form *form, const struct bhi_variant *variant,
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
        if (!bhi_role_writes(parameter->role)) {
            continue;
        }
        const struct bhi_value *end = &ends[find_name(e, parameter->name) - e->names];
        good = bhi_emit_convert(emitter, end, bhi_value_dtype(end), &results[i]);
    }
    free(names);
    return good;
}

bool bhi_refuse_output(const char *name, bh_dtype must, bh_dtype is,
                       struct bhi_complaint *complaint) {
    return bhi_refuse(complaint, "output '%s' must be %s, but is %s: write %s(...)", name,
                      bhi_dtype_name(must), bhi_dtype_name(is),
                      bhi_dtype_name(bhi_dtype_computed(must)));
}

static bool infer_expression(const struct bhi_form *form, struct bhi_variant *variant,
                             struct bhi_constants *push, struct bhi_complaint *complaint) {
    struct bhi_pen pen = {0};
    struct bhi_value results[BHI_MAX_PARAMETERS];
    struct bhi_emitter emitter = {
        .expression = &form->expression, .pen = &pen, .push = push, .complaint = complaint};
    bool good = bhi_form_emit(form, variant, &emitter, results);
    bhi_pen_fini(&pen);
    for (uint32_t i = 0; good && i < form->count; i++) {
        if (!bhi_role_writes(form->parameters[i].role)) {
            continue;
        }
        const bh_dtype given = (bh_dtype)variant->dtypes[i];
        const bh_dtype wanted = form->parameters[i].dtype;
        const bh_dtype is = variant->reduces ? emitter.accumulator.result : results[i].dtype;
        const bh_dtype must = given != BH_DTYPE_NONE ? given : wanted;
        if (must != BH_DTYPE_NONE && wanted != BH_DTYPE_NONE && must != wanted) {
            good =
                bhi_refuse(complaint, "output '%s' is %s, but must be %s", form->parameters[i].name,
                           bhi_dtype_name(given), bhi_dtype_name(wanted));
        } else if (must != BH_DTYPE_NONE && bhi_dtype_computed(must) != is) {
            good = bhi_refuse_output(form->parameters[i].name, must, is, complaint);
        }
        variant->dtypes[i] = (uint8_t)(bhi_dtype_is_small(must) ? must : is);
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
    variant->reduces = form->is_expression && bhi_expression_reduction(&form->expression);
    *out_constants = bhi_form_constants(form, variant);
    return !form->is_expression || infer_expression(form, variant, out_constants, complaint);
}
