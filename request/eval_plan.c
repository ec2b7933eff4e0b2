#include "request/eval_plan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "request/eval_reduce.h"

/* -- creation ------------------------------------------------------------------------------------ */

static bool take_parameters(struct bhi_form *form, const bh_template_options *options) {
    for (uint32_t i = 0; i < options->parameter_count; i++) {
        const bh_parameter *given = &options->parameters[i];
        if (!given->name || strlen(given->name) >= BHI_NAME_BYTES || given->type) {
            return false;
        }
        struct bhi_parameter *parameter = &form->parameters[form->count++];
        parameter->role = (enum bhi_role)given->role;
        parameter->dtype = BH_DTYPE_NONE;
        strcpy(parameter->name, given->name);
    }
    return true;
}

/* Plans an expression with reductions. *out_whole: it has none, or cannot be parsed, which
 * bh_template_create says. */
static bh_status make(struct bhi_eval_plan *plan, const bh_template_options *options,
                      bool *out_whole, bh_detail *detail) {
    struct bhi_form *form = &plan->form;
    struct bhi_complaint complaint;
    const char *outputs[BH_MAX_PARAMETERS];
    uint32_t count = 0;
    *out_whole = true;
    if (!options->expression || options->parameter_count > BH_MAX_PARAMETERS ||
        !bhi_expression_parse(options->expression, strlen(options->expression), &form->expression,
                              &complaint) ||
        !form->expression.reduction_count || !take_parameters(form, options)) {
        return BH_OK;
    }
    *out_whole = false;
    form->is_expression = form->planned = true;
    if (!bhi_form_check(form, &complaint)) {
        return bhi_eval_refuse(detail, &complaint);
    }
    for (uint32_t i = 0; i < form->count; i++) {
        if (bhi_role_writes(form->parameters[i].role)) {
            outputs[count++] = form->parameters[i].name;
        }
    }
    return bhi_split_make(&form->expression, outputs, count, &plan->plan, &complaint)
               ? BH_OK
               : bhi_eval_refuse(detail, &complaint);
}

bh_status bhi_eval_plan_create(bh_context *context, const bh_template_options *options,
                               struct bhi_eval_plan **out_plan, bh_detail *detail) {
    bool whole;
    *out_plan = NULL;
    struct bhi_eval_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        return bhi_eval_fail_memory(detail);
    }
    atomic_init(&plan->references, 1);
    plan->context = context;
    plan->trusted = options->trusted;
    plan->compile_deadline_ns = options->compile_deadline_ns;
    bhi_format(plan->name, sizeof plan->name, "%s", options->name);
    bh_status status = make(plan, options, &whole, detail);
    if (status == BH_OK && whole) {
        status = bh_template_create(context, options, &plan->whole, detail);
    } else if (status == BH_OK && !(plan->templates = bhi_eval_templates_make())) {
        status = bhi_eval_fail_memory(detail);
    }
    if (status != BH_OK) {
        bhi_eval_plan_release(plan);
        return status;
    }
    *out_plan = plan;
    return BH_OK;
}

void bhi_eval_plan_retain(struct bhi_eval_plan *plan) {
    atomic_fetch_add(&plan->references, 1);
}

void bhi_eval_plan_release(struct bhi_eval_plan *plan) {
    if (plan && atomic_fetch_sub(&plan->references, 1) == 1) {
        bh_template_release(plan->whole);
        bhi_split_fini(&plan->plan);
        bhi_form_fini(&plan->form);
        bhi_eval_templates_free(plan->templates);
        free(plan);
    }
}

/* -- arguments ------------------------------------------------------------------------------------ */

static bh_status take_array(const bh_argument *argument, struct bhi_eval_value *out,
                            bh_detail *detail) {
    bh_description d = {.struct_size = sizeof d};
    if (argument->description) {
        d = *argument->description;
    } else {
        const bh_status status = bh_buffer_description(argument->buffer, &d, detail);
        if (status != BH_OK) {
            return status;
        }
    }
    if (!bhi_dtype_find_number(d.kind, d.bits, &out->dtype)) {
        struct bhi_complaint complaint;
        bhi_refuse(&complaint, "'%s': expressions do not take its type", argument->name);
        return bhi_eval_refuse(detail, &complaint);
    }
    out->buffer = argument->buffer;
    out->offset = d.offset;
    out->shape = (struct bhi_shape){.rank = d.rank, .count = 1};
    for (uint32_t i = 0; i < d.rank; i++) {
        out->shape.size[i] = d.shape[i];
        out->shape.count *= d.shape[i];
    }
    return BH_OK;
}

/* Takes what is given for each input; outputs are looked up when they are computed. */
static bh_status take_arguments(struct bhi_eval_use *use, const bh_argument *arguments,
                                uint32_t count) {
    const struct bhi_form *form = &use->plan->form;
    for (uint32_t i = 0; i < form->count; i++) {
        const struct bhi_parameter *parameter = &form->parameters[i];
        const bh_argument *argument = NULL;
        for (uint32_t k = 0; k < count && !argument; k++) {
            argument = strcmp(arguments[k].name, parameter->name) ? NULL : &arguments[k];
        }
        if (!bhi_role_reads(parameter->role)) {
            continue;
        }
        struct bhi_eval_value *value = bhi_eval_add(use, parameter->name);
        value->given = true;
        value->number = parameter->role == BHI_ROLE_PUSH;
        if (!argument || !argument->buffer == !value->number) {
            return bhi_eval_fail(use->detail, BH_INVALID_ARGUMENT,
                                 "an array or a number is missing");
        }
        value->dtype = argument->dtype;
        value->bits = argument->bits;
        const bh_status status = value->number ? BH_OK : take_array(argument, value, use->detail);
        if (status != BH_OK) {
            return status;
        }
    }
    return BH_OK;
}

/* -- stages -------------------------------------------------------------------------------------- */

/* Whether the caller has given a buffer for what the stage computes. */
static bh_status take_output(struct bhi_eval_use *use, const char *name,
                             struct bhi_eval_value *out) {
    for (uint32_t i = use->output_count; i-- > 0;) { /* inputs of the same name come first */
        const bh_argument *argument = &use->outputs[i];
        if (*name && argument->buffer && !strcmp(argument->name, name)) {
            return take_array(argument, out, use->detail);
        }
    }
    return BH_OK;
}

/* Copies a result to an output of small floats. Later stages go on with the result itself. */
static bh_status put_small(struct bhi_eval_use *use, const struct bhi_eval_value *result,
                           struct bhi_eval_value *output) {
    struct bhi_pen text = {0};
    struct bhi_eval_kernel kernel;
    use->values[use->count] = *result;
    strcpy(use->values[use->count++].name, "result");
    bhi_pen_put(&text, "output = result");
    bh_status status = bhi_eval_look_at(use, &text, "output", &kernel);
    status = status == BH_OK ? bhi_eval_put(use, &kernel, output) : status;
    use->count--;
    return status;
}

static bh_status put_stage(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage) {
    const struct bhi_reduction *r = stage->reduction;
    const enum bhi_reducer reducer = r ? bhi_function_reducer(r->function) : BHI_REDUCE_NOT;
    const struct bhi_kernel_form form = {.arguments = "", .keepdims = r && r->keepdims};
    struct bhi_eval_value out = {.dtype = BH_DTYPE_NONE};
    struct bhi_eval_kernel kernel;
    bh_status status = use->pieces && !use->source ? take_output(use, stage->output, &out) : BH_OK;
    struct bhi_eval_value wanted = out;
    if (status != BH_OK) {
        return status;
    }
    const bool small = wanted.buffer && bhi_dtype_is_small(wanted.dtype);
    if (small) {
        out = (struct bhi_eval_value){.dtype = BH_DTYPE_NONE};
    }
    if (bhi_reducer_finds(reducer)) {
        status = bhi_eval_find_index(use, stage, reducer == BHI_REDUCE_ARGMIN, form.keepdims, &out);
    } else if (r) {
        status = bhi_eval_reduce(use, stage, &form, reducer, &out);
    } else {
        status = bhi_eval_look_at_stage(use, stage, &form, &kernel);
        status = status == BH_OK ? bhi_eval_put(use, &kernel, &out) : status;
    }
    if (status == BH_OK && wanted.buffer &&
        (!bhi_shape_equal(&wanted.shape, &out.shape) ||
         bhi_dtype_computed(wanted.dtype) != out.dtype)) {
        char is[128], must[128];
        struct bhi_complaint complaint;
        bhi_refuse(&complaint, "output '%s' is %s %s, but must be %s %s", stage->output,
                   bhi_dtype_name(wanted.dtype), bhi_shape_text(&wanted.shape, is, sizeof is),
                   bhi_dtype_name(out.dtype), bhi_shape_text(&out.shape, must, sizeof must));
        return bhi_eval_refuse(use->detail, &complaint);
    }
    if (status == BH_OK && small) {
        status = put_small(use, &out, &wanted);
    }
    use->written = wanted.buffer ? wanted.buffer : use->written;
    bhi_format(out.name, sizeof out.name, "%s", stage->result);
    if (status == BH_OK) {
        use->values[use->count++] = out;
    }
    return status;
}

static bh_status put_all(struct bhi_eval_use *use, const bh_argument *arguments, uint32_t count) {
    bh_status status = take_arguments(use, arguments, count);
    for (uint32_t i = 0; i < use->plan->plan.count && status == BH_OK; i++) {
        status = put_stage(use, &use->plan->plan.stages[i]);
    }
    return status;
}

bh_status bhi_eval_plan_output(struct bhi_eval_plan *plan, const bh_argument *arguments,
                               uint32_t count, const char *name, bh_description *out,
                               bh_detail *detail) {
    if (plan->whole) {
        return bh_template_output(plan->whole, arguments, count, name, out, detail);
    }
    struct bhi_eval_use *use = calloc(1, sizeof *use);
    if (!use) {
        return bhi_eval_fail_memory(detail);
    }
    *use = (struct bhi_eval_use){.plan = plan, .detail = detail};
    bh_status status = take_arguments(use, arguments, count);
    for (uint32_t i = 0; i < plan->plan.count && status == BH_OK; i++) {
        status = put_stage(use, &plan->plan.stages[i]);
        if (status == BH_OK && !strcmp(plan->plan.stages[i].output, name)) {
            const struct bhi_eval_value *value = &use->values[use->count - 1];
            bhi_eval_describe(value, &value->shape, out);
            free(use);
            return BH_OK;
        }
    }
    free(use);
    return status == BH_OK ? bhi_eval_fail(detail, BH_INVALID_ARGUMENT, "there is no such output")
                           : status;
}

bh_status bhi_eval_plan_source(struct bhi_eval_plan *plan, const bh_argument *arguments,
                               uint32_t count, char **out_text, bh_detail *detail) {
    static const struct bhi_eval_limits none = {.alignment = 1};
    struct bhi_pen pen = {0};
    struct bhi_pieces pieces = {0};
    struct bhi_eval_use *use = calloc(1, sizeof *use);
    bh_status status = use ? BH_OK : bhi_eval_fail_memory(detail);
    *out_text = NULL;
    if (use) {
        *use = (struct bhi_eval_use){
            .plan = plan, .detail = detail, .pieces = &pieces, .source = &pen, .limits = &none};
        status = plan->whole ? bhi_eval_put_source(use, plan->whole, arguments, count)
                             : put_all(use, arguments, count);
    }
    if (status == BH_OK && pen.failed) {
        status = bhi_eval_fail_memory(detail);
    }
    bhi_pieces_free(&pieces);
    free(use);
    if (status != BH_OK) {
        bhi_pen_fini(&pen);
    }
    *out_text = pen.text;
    return status;
}

bh_status bhi_eval_plan_cut(struct bhi_eval_plan *plan, const bh_argument *arguments,
                            uint32_t count, uint32_t arrays, const struct bhi_eval_limits *limits,
                            struct bhi_pieces *out_pieces, bh_detail *detail) {
    *out_pieces = (struct bhi_pieces){0};
    struct bhi_eval_use *use = calloc(1, sizeof *use);
    bh_status status = use ? BH_OK : bhi_eval_fail_memory(detail);
    if (use && plan->whole) {
        status = bhi_pieces_cut(out_pieces, plan->whole, arguments, count, arrays, limits->bytes,
                                limits->alignment, detail);
    } else if (use) {
        *use = (struct bhi_eval_use){.plan = plan,
                                     .limits = limits,
                                     .pieces = out_pieces,
                                     .outputs = arguments,
                                     .output_count = count,
                                     .detail = detail};
        status = put_all(use, arguments, count);
    }
    free(use);
    if (status != BH_OK) {
        bhi_pieces_free(out_pieces);
    }
    return status;
}
