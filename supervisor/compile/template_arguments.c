/* Determines the variant of a template that the arguments of a launch need, and its command. */
#include "base/detail.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/compile/template.h"

#include <stdio.h>
#include <string.h>

#define REFUSE(detail, call, name, ...)                                                            \
    BHI_FAIL(detail, call, BH_REASON_TEMPLATE, name, .text = BHI_SAY(__VA_ARGS__))

static bool is_array(const struct bhi_parameter *parameter) {
    return parameter->role != BHI_ROLE_PUSH;
}

static bool is_input(const struct bhi_parameter *parameter) {
    return parameter->role == BHI_ROLE_IN || parameter->role == BHI_ROLE_INOUT;
}

/* -- which argument is for which parameter ---------------------------------------------------- */

static uint32_t count_parameters(const struct bhi_form *form, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < form->count; i++) {
        count += !strcmp(form->parameters[i].name, name);
    }
    return count;
}

/* Returns an argument called |name|, after skipping |skip| of that name; NULL: there is none. */
static const bh_argument *find_argument(const bh_argument *arguments, uint32_t count,
                                        const char *name, uint32_t skip) {
    for (uint32_t i = 0; i < count; i++) {
        if (!strcmp(arguments[i].name, name) && skip-- == 0) {
            return &arguments[i];
        }
    }
    return NULL;
}

static bh_status assign(const struct bhi_form *form, const bh_argument *arguments, uint32_t count,
                        const char *call, const bh_argument **out, bh_detail *detail) {
    for (uint32_t i = 0; i < count; i++) {
        if (!arguments[i].name) {
            return REFUSE(detail, call, "arguments", "argument %u has no name", i);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t wanted = count_parameters(form, arguments[i].name);
        if (!wanted) {
            return REFUSE(detail, call, arguments[i].name, "there is no parameter '%.63s'",
                          arguments[i].name);
        }
        if (find_argument(arguments, count, arguments[i].name, wanted)) {
            return REFUSE(detail, call, arguments[i].name, "argument '%s' is given twice",
                          arguments[i].name);
        }
    }
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        /* If an input and an output have the same name, the first argument is the input's. */
        const bool second =
            parameter->role == BHI_ROLE_OUT && count_parameters(form, parameter->name) == 2;
        out[i] = find_argument(arguments, count, parameter->name, second);
    }
    return BH_OK;
}

/* -- types and shapes ------------------------------------------------------------------------- */

static bool take_shape(const bh_description *d, struct bhi_shape *out) {
    int64_t stride = 1;
    bool compact = true;
    *out = (struct bhi_shape){.rank = d->rank, .count = 1};
    for (uint32_t i = d->rank; i-- > 0;) {
        out->size[i] = d->shape[i];
        out->count *= d->shape[i]; /* bh_buffer_set_description has checked the product */
        compact &= d->shape[i] == 1 || d->strides[i] == stride;
        stride *= d->shape[i] ? (int64_t)d->shape[i] : 1;
    }
    return compact || !out->count;
}

/* What the array of an argument is: what the argument says, or else its buffer. */
static bh_status describe(const struct bhi_parameter *parameter, const bh_argument *argument,
                          const char *call, bh_description *out, bh_detail *detail) {
    bhi_description_init(out);
    if (!argument->description) {
        return bh_buffer_description(argument->buffer, out, detail);
    }
    if (!BHI_LIVE(argument->buffer)) {
        return REFUSE(detail, call, parameter->name, "'%s': buffer is NULL or was released",
                      parameter->name);
    }
    return bhi_description_take(argument->buffer, argument->description, call, out, detail);
}

static bh_status look_at(const struct bhi_parameter *parameter, const bh_argument *argument,
                         const char *call, uint32_t index, struct bhi_bound *bound,
                         bh_detail *detail) {
    bh_dtype dtype = BH_DTYPE_NONE;
    bh_description d;
    if (!is_array(parameter)) {
        if (argument->buffer || argument->description || !bhi_dtype_is_known(argument->dtype)) {
            return REFUSE(detail, call, parameter->name,
                          "'%s' is a number: give its dtype and bits", parameter->name);
        }
        bound->variant.dtypes[index] = (uint8_t)argument->dtype;
        return BH_OK;
    }
    BHI_TRY(describe(parameter, argument, call, &d, detail));
    const bool known = d.lanes == 1 && bhi_dtype_find_number(d.kind, d.bits, &dtype);
    if (!known && d.kind == BH_NUMBER_FLOAT && d.lanes == 1) {
        return REFUSE(detail, call, parameter->name, "'%s': templates take no %u-bit floats",
                      parameter->name, d.bits);
    }
    if (!known) {
        return REFUSE(detail, call, parameter->name, "'%s': templates take no %s of %u bits%s",
                      parameter->name,
                      d.kind == BH_NUMBER_BFLOAT    ? "bfloat"
                      : d.kind == BH_NUMBER_F8_E8M0 ? "f8_e8m0"
                      : d.kind == BH_NUMBER_COMPLEX ? "complex"
                                                    : "numbers",
                      d.bits, d.lanes > 1 ? " and several lanes" : "");
    }
    if (!take_shape(&d, &bound->shapes[index])) {
        return REFUSE(detail, call, parameter->name,
                      "'%s': its elements are not contiguous in C order", parameter->name);
    }
    bound->variant.dtypes[index] = (uint8_t)dtype;
    bound->offsets[index] = d.offset;
    return BH_OK;
}

static bh_status match_outputs(const struct bhi_form *form, struct bhi_bound *bound, bool inputs,
                               const char *call, bh_detail *detail) {
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        char is[128], wanted[128];
        if (!is_array(parameter) || parameter->role == BHI_ROLE_IN || !bound->arguments[i]) {
            continue;
        }
        if (!inputs) { /* without inputs, the first output determines the shape */
            bound->shape = bound->shapes[i];
            inputs = true;
        }
        if (!bhi_shape_equal(&bound->shapes[i], &bound->shape)) {
            return REFUSE(detail, call, parameter->name, "output '%s' is %s, but must be %s",
                          parameter->name, bhi_shape_text(&bound->shapes[i], is, sizeof is),
                          bhi_shape_text(&bound->shape, wanted, sizeof wanted));
        }
    }
    return BH_OK;
}

/* Makes the joined shape that of a reduction's results. |inputs| has room for one more, which has the axes
 * that stay, as the output has: they are kept apart from the others. */
static bool reduce_shape(const struct bhi_form *form, struct bhi_bound *bound,
                         struct bhi_named_shape *inputs, uint32_t *count,
                         struct bhi_complaint *complaint) {
    const struct bhi_reduction *reduction = bhi_expression_reduction(&form->expression);
    struct bhi_reduced reduced;
    if (!bhi_reduction_shape(&form->expression, reduction, &bound->shape, &reduced, complaint)) {
        return false;
    }
    inputs[(*count)++] = (struct bhi_named_shape){"the result", reduced.kept};
    bound->length = reduced.length;
    bound->shape = reduced.result;
    return true;
}

static bh_status join_shapes(const struct bhi_form *form, struct bhi_bound *bound, const char *call,
                             bh_detail *detail) {
    struct bhi_named_shape inputs[BHI_MAX_PARAMETERS + 1];
    struct bhi_complaint complaint;
    const bool reduces = form->is_expression && bhi_expression_reduction(&form->expression);
    uint8_t has[BHI_MAX_PARAMETERS + 1];
    uint32_t count = 0, next = 0;
    for (uint32_t i = 0; i < form->count; i++) {
        if (is_input(&form->parameters[i])) {
            inputs[count++] = (struct bhi_named_shape){form->parameters[i].name, bound->shapes[i]};
        }
    }
    if (!bhi_shape_join(inputs, count, &bound->shape, &complaint)) {
        return bhi_template_fail(&complaint, call, detail);
    }
    const struct bhi_shape joined = bound->shape;
    if (reduces && !reduce_shape(form, bound, inputs, &count, &complaint)) {
        return bhi_template_fail(&complaint, call, detail);
    }
    BHI_TRY(match_outputs(form, bound, count > 0, call, detail));
    const uint64_t most = joined.count > bound->shape.count ? joined.count : bound->shape.count;
    if (most > BHI_MAX_ELEMENTS) {
        return BHI_FAIL(detail, call, BH_REASON_TOO_LARGE, "the number of elements", .value = most,
                        .limit = BHI_MAX_ELEMENTS);
    }
    if (!bhi_shape_axes(&joined, inputs, count, &bound->axes, has, &complaint)) {
        return bhi_template_fail(&complaint, call, detail);
    }
    bound->variant.axes = (uint8_t)bound->axes.count;
    for (uint32_t i = 0; i < form->count; i++) {
        if (is_input(&form->parameters[i])) {
            bound->variant.has[i] = has[next++];
        } else if (reduces && is_array(&form->parameters[i])) {
            bound->variant.has[i] = has[count - 1];
        }
    }
    return BH_OK;
}

bh_status bhi_template_bind(const struct bh_template *t, const bh_argument *arguments,
                            uint32_t count, bool complete, const char *call,
                            struct bhi_bound *out_bound, bh_detail *detail) {
    const struct bhi_form *form = &t->form;
    struct bhi_complaint complaint;
    *out_bound = (struct bhi_bound){0};
    if (count && !arguments) {
        return REFUSE(detail, call, "arguments", "arguments is NULL, argument_count %u", count);
    }
    bh_status status = assign(form, arguments, count, call, out_bound->arguments, detail);
    for (uint32_t i = 0; i < form->count && status == BH_OK; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        const bh_argument **argument = &out_bound->arguments[i];
        out_bound->variant.dtypes[i] = BH_DTYPE_NONE;
        if (!complete && parameter->role == BHI_ROLE_OUT && *argument && !(*argument)->buffer) {
            *argument = NULL;
        }
        if (*argument) {
            status = look_at(parameter, *argument, call, i, out_bound, detail);
        } else if (complete || parameter->role != BHI_ROLE_OUT) {
            status = REFUSE(detail, call, parameter->name, "%s '%s' is missing",
                            bhi_role_name(parameter->role), parameter->name);
        }
    }
    if (status == BH_OK && !form->grid) {
        status = join_shapes(form, out_bound, call, detail);
    }
    if (status == BH_OK &&
        !bhi_form_infer(form, &out_bound->variant, &out_bound->push, &complaint)) {
        status = bhi_template_fail(&complaint, call, detail);
    }
    return status;
}

/* -- the command ------------------------------------------------------------------------------ */

static uint64_t bytes_of(const struct bhi_bound *bound, uint32_t index) {
    return bound->shapes[index].count * bhi_dtype_size((bh_dtype)bound->variant.dtypes[index]);
}

/* An output may be the same range of a buffer as an input of its shape, because each invocation reads
 * an element before it writes it. Every other overlap is refused: an invocation could read what another one
 * has written. */
static bh_status check_overlap(const struct bhi_form *form, const struct bhi_bound *bound,
                               const char *call, bh_detail *detail) {
    for (uint32_t i = 0; i < form->count; i++) {
        if (!is_array(&form->parameters[i]) || form->parameters[i].role == BHI_ROLE_IN) {
            continue;
        }
        for (uint32_t k = 0; k < form->count; k++) {
            const struct bhi_parameter *other = &form->parameters[k];
            if (k == i || !is_array(other) ||
                bound->arguments[i]->buffer != bound->arguments[k]->buffer) {
                continue;
            }
            const uint64_t begin = bound->offsets[i], end = begin + bytes_of(bound, i);
            const uint64_t at = bound->offsets[k], stop = at + bytes_of(bound, k);
            const bool same = !bound->variant.reduces && begin == at && end == stop &&
                              other->role == BHI_ROLE_IN &&
                              bound->shapes[k].count == bound->shape.count;
            if (!same && begin < stop && at < end) {
                return REFUSE(detail, call, form->parameters[i].name, "output '%s' overlaps '%s'",
                              form->parameters[i].name, other->name);
            }
        }
    }
    return BH_OK;
}

static bh_status put_push(const struct bhi_form *form, const struct bhi_bound *bound,
                          const char *call, bh_template_call *out, bh_detail *detail) {
    const uint32_t first = bhi_variant_numbers(&bound->variant);
    uint32_t words = first;
    memcpy(out->push, bound->push.words, sizeof out->push);
    out->push[0] = (uint32_t)bound->shape.count;
    bhi_constants_put_axes(&bound->axes, out->push);
    if (bound->variant.reduces) {
        bhi_reduction_walk(bhi_expression_reduction(&form->expression), bound->length,
                           out->push + bhi_variant_walk(&bound->variant));
    }
    for (uint32_t i = 0; i < form->count; i++) {
        const bh_dtype dtype = (bh_dtype)bound->variant.dtypes[i];
        if (is_array(&form->parameters[i])) {
            continue;
        }
        if (words + bhi_constant_words(dtype) > BHI_PUSH_WORDS) {
            return BHI_FAIL(detail, call, BH_REASON_TOO_LARGE,
                            "the size of the numbers, as push constants,",
                            .value = 4 * (words + bhi_constant_words(dtype) - first),
                            .limit = 4 * (BHI_PUSH_WORDS - first));
        }
        bhi_constant_put(dtype, bound->arguments[i]->bits, &out->push[words]);
        words += bhi_constant_words(dtype);
    }
    out->command.dispatch.push = out->push;
    out->command.dispatch.push_size = 4 * bound->push.count;
    return BH_OK;
}

static bh_binding bind_array(const struct bhi_bound *bound, uint32_t index, enum bhi_role role,
                             uint32_t binding) {
    bh_buffer *buffer = bound->arguments[index]->buffer;
    const uint64_t bytes = bytes_of(bound, index);
    const bh_access access = role == BHI_ROLE_IN    ? BH_ACCESS_READ
                             : role == BHI_ROLE_OUT ? BH_ACCESS_WRITE
                                                    : BH_ACCESS_READ_WRITE;
    if (bytes) {
        return (bh_binding){.binding = binding,
                            .buffer = buffer,
                            .offset = bound->offsets[index],
                            .size = bytes,
                            .access = access};
    }
    /* An empty array cannot be bound as 0 bytes of a larger buffer, so the whole buffer is bound.
     * The kernel leaves the bytes as they are, so the access must not claim that it overwrites
     * them. */
    const bool empty = bh_buffer_size(buffer) == 0;
    return (bh_binding){.binding = binding,
                        .buffer = buffer,
                        .size = empty ? 0 : BH_WHOLE_SIZE,
                        .access =
                            access == BH_ACCESS_WRITE && !empty ? BH_ACCESS_READ_WRITE : access};
}

static bh_status set_groups(const struct bh_template *t, const struct bhi_bound *bound,
                            const uint32_t *groups, const char *call, bh_template_call *out,
                            bh_detail *detail) {
    if (t->form.grid != !!groups) {
        return REFUSE(detail, call, "groups",
                      groups ? "groups is set, but the template is not a grid"
                             : "groups is NULL, but the template is a grid");
    }
    const uint64_t all = (bound->shape.count + BHI_LOCAL_SIZE - 1) / BHI_LOCAL_SIZE;
    const uint64_t row = all > BHI_ROW_GROUPS ? BHI_ROW_GROUPS : all ? all : 1;
    for (int i = 0; i < 3; i++) {
        out->command.dispatch.groups[i] = groups ? groups[i] : 1;
    }
    if (!groups) {
        out->command.dispatch.groups[0] = (uint32_t)row;
        out->command.dispatch.groups[1] = all ? (uint32_t)((all + row - 1) / row) : 1;
    }
    return BH_OK;
}

bh_status bhi_template_command(const struct bh_template *t, const struct bhi_bound *bound,
                               const uint32_t *groups, const char *call, bh_template_call *out_call,
                               bh_detail *detail) {
    const struct bhi_form *form = &t->form;
    uint32_t count = 0;
    BHI_TRY(set_groups(t, bound, groups, call, out_call, detail));
    if (!form->grid) {
        BHI_TRY(check_overlap(form, bound, call, detail));
    }
    BHI_TRY(put_push(form, bound, call, out_call, detail));
    for (uint32_t i = 0; i < form->count; i++) {
        if (!is_array(&form->parameters[i])) {
            continue;
        }
        out_call->bindings[count] = bind_array(bound, i, form->parameters[i].role, count);
        count++;
    }
    out_call->command.type = BH_COMMAND_DISPATCH;
    out_call->command.dispatch.bindings = out_call->bindings;
    out_call->command.dispatch.binding_count = count;
    return BH_OK;
}

bh_status bhi_template_describe(const struct bh_template *t, const struct bhi_bound *bound,
                                const char *name, const char *call, bh_description *out,
                                bh_detail *detail) {
    for (uint32_t i = 0; i < t->form.count; i++) {
        const struct bhi_parameter *parameter = &t->form.parameters[i];
        const bh_dtype dtype = (bh_dtype)bound->variant.dtypes[i];
        if (strcmp(parameter->name, name) != 0 || !is_array(parameter) ||
            parameter->role == BHI_ROLE_IN) {
            continue;
        }
        bhi_description_init(out);
        out->kind = bhi_dtype_number(dtype);
        out->bits = 8 * bhi_dtype_size(dtype);
        out->rank = bound->shape.rank;
        memcpy(out->shape, bound->shape.size, bound->shape.rank * sizeof out->shape[0]);
        return BH_OK;
    }
    return REFUSE(detail, call, name, "there is no output '%.63s'", name);
}
