#include "request/eval_kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

/* -- failures ------------------------------------------------------------------------------------ */

bh_status bhi_eval_fail(bh_detail *detail, bh_status status, const char *why) {
    static const char call[] = "bh_template_prepare: ";
    *detail = (bh_detail){.status = status, .sentence = sizeof call - 1};
    detail->reason = status == BH_NO_MEMORY ? BH_REASON_MEMORY : BH_REASON_TEMPLATE;
    detail->sys_errno = status == BH_NO_MEMORY ? ENOMEM : 0;
    bhi_format(detail->message, sizeof detail->message, "%s%s", call, why);
    detail->sentence_length = (uint16_t)(strlen(detail->message) - detail->sentence);
    return status;
}

bh_status bhi_eval_fail_memory(bh_detail *detail) {
    return bhi_eval_fail(detail, BH_NO_MEMORY, "out of memory");
}

bh_status bhi_eval_refuse(bh_detail *detail, const struct bhi_complaint *complaint) {
    return complaint->memory ? bhi_eval_fail_memory(detail)
                             : bhi_eval_fail(detail, BH_INVALID_ARGUMENT, complaint->text);
}

/* -- values -------------------------------------------------------------------------------------- */

/* The last one of that name; NULL: there is none. */
const struct bhi_eval_value *bhi_eval_find(const struct bhi_eval_use *use, const char *name) {
    for (uint32_t i = use->count; i-- > 0;) {
        if (!strcmp(use->values[i].name, name)) {
            return &use->values[i];
        }
    }
    return NULL;
}

struct bhi_eval_value *bhi_eval_add(struct bhi_eval_use *use, const char *name) {
    struct bhi_eval_value *value = &use->values[use->count++];
    *value = (struct bhi_eval_value){.dtype = BH_DTYPE_NONE};
    bhi_format(value->name, sizeof value->name, "%s", name);
    return value;
}

void bhi_eval_describe(const struct bhi_eval_value *value, const struct bhi_shape *shape,
                       bh_description *out) {
    *out = (bh_description){.struct_size = sizeof(bh_description)};
    out->lanes = 1;
    out->kind = bhi_dtype_number(value->dtype);
    out->bits = 8 * bhi_dtype_size(value->dtype);
    out->offset = value->offset;
    out->rank = shape->rank;
    memcpy(out->shape, shape->size, shape->rank * sizeof shape->size[0]);
}

/* -- kernels ------------------------------------------------------------------------------------- */

void bhi_eval_kernel_fini(struct bhi_eval_kernel *kernel) {
    if (kernel->form) {
        bhi_form_fini(kernel->form);
        free(kernel->form);
    }
    free(kernel->text);
}

/* Finds the arrays that the kernel reads, and infers what comes out. */
static bool infer(struct bhi_eval_use *use, struct bhi_eval_kernel *kernel, const char *target,
                  struct bhi_complaint *complaint) {
    struct bhi_form *form = kernel->form;
    struct bhi_named_shape shapes[BH_MAX_PARAMETERS];
    struct bhi_variant variant = {0};
    struct bhi_constants constants;
    uint32_t arrays = 0;
    if (!bhi_expression_parse(kernel->text, strlen(kernel->text), &form->expression, complaint)) {
        return false;
    }
    for (uint32_t i = 0; i < form->expression.name_count; i++) {
        const struct bhi_name *name = &form->expression.names[i];
        const struct bhi_eval_value *value = name->read ? bhi_eval_find(use, name->text) : NULL;
        if (!value) {
            continue;
        }
        if (form->count + 1 == BH_MAX_PARAMETERS) {
            return bhi_refuse(complaint, "a kernel of it has more than %d arrays and numbers",
                              BH_MAX_PARAMETERS);
        }
        struct bhi_parameter *parameter = &form->parameters[form->count];
        parameter->role = value->number ? BHI_ROLE_PUSH : BHI_ROLE_IN;
        parameter->dtype = BH_DTYPE_NONE;
        strcpy(parameter->name, name->text);
        variant.dtypes[form->count] = (uint8_t)value->dtype;
        kernel->values[form->count++] = value;
        if (!value->number) {
            shapes[arrays++] = (struct bhi_named_shape){parameter->name, value->shape};
        }
    }
    struct bhi_parameter *output = &form->parameters[form->count];
    variant.dtypes[form->count++] = BH_DTYPE_NONE;
    output->role = BHI_ROLE_OUT;
    output->dtype = BH_DTYPE_NONE;
    bhi_format(output->name, sizeof output->name, "%s", target);
    form->is_expression = true;
    if (!bhi_form_check(form, complaint) ||
        !bhi_form_infer(form, &variant, &constants, complaint) ||
        !bhi_shape_join(shapes, arrays, &kernel->joined, complaint)) {
        return false;
    }
    kernel->dtype = (bh_dtype)variant.dtypes[form->count - 1];
    kernel->reduced = (struct bhi_reduced){.result = kernel->joined, .length = 1};
    const struct bhi_reduction *reduction = bhi_expression_reduction(&form->expression);
    return !reduction || bhi_reduction_shape(&form->expression, reduction, &kernel->joined,
                                             &kernel->reduced, complaint);
}

bh_status bhi_eval_look_at(struct bhi_eval_use *use, struct bhi_pen *text, const char *target,
                           struct bhi_eval_kernel *out) {
    struct bhi_complaint complaint;
    const bool written = !text->failed;
    *out = (struct bhi_eval_kernel){.text = text->text, .form = calloc(1, sizeof *out->form)};
    if (!written || !out->form) {
        bhi_eval_kernel_fini(out);
        return bhi_eval_fail_memory(use->detail);
    }
    if (!infer(use, out, target, &complaint)) {
        bhi_eval_kernel_fini(out);
        return bhi_eval_refuse(use->detail, &complaint);
    }
    return BH_OK;
}

/* Creates the buffer of a result between two kernels. */
static bh_status make_scratch(struct bhi_eval_use *use, struct bhi_eval_value *value) {
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = use->limits->stream;
    options.memory = options.stream ? BH_MEMORY_AUTO : BH_MEMORY_HOST;
    options.flags = BH_BUFFER_UNINITIALIZED;
    bh_buffer *buffer = NULL;
    const bh_status status =
        bh_buffer_create(use->plan->context, value->shape.count * bhi_dtype_size(value->dtype),
                         &options, &buffer, use->detail);
    if (status != BH_OK) {
        return status;
    }
    if (!bhi_pieces_keep(use->pieces, buffer)) {
        bh_buffer_release(buffer);
        return bhi_eval_fail_memory(use->detail);
    }
    value->buffer = buffer;
    return BH_OK;
}

struct bhi_eval_templates *bhi_eval_templates_make(void) {
    struct bhi_eval_templates *templates = calloc(1, sizeof *templates);
    if (templates) {
        pthread_mutex_init(&templates->lock, NULL);
    }
    return templates;
}

void bhi_eval_templates_free(struct bhi_eval_templates *templates) {
    if (!templates) {
        return;
    }
    for (uint32_t i = 0; i < BHI_EVAL_TEMPLATES; i++) {
        bh_template_release(templates->rows[i].template_);
        free(templates->rows[i].text);
    }
    pthread_mutex_destroy(&templates->lock);
    free(templates);
}

/* Returns the template of |text| with a reference; NULL: there is none. */
static bh_template *find_template(struct bhi_eval_templates *templates, const char *text) {
    bh_template *found = NULL;
    pthread_mutex_lock(&templates->lock);
    for (uint32_t i = 0; i < BHI_EVAL_TEMPLATES && !found; i++) {
        const struct bhi_eval_template *row = &templates->rows[i];
        if (row->text && !strcmp(row->text, text)) {
            found = row->template_;
            bh_template_retain(found);
        }
    }
    pthread_mutex_unlock(&templates->lock);
    return found;
}

/* Without memory it is made anew the next time. */
static void keep_template(struct bhi_eval_templates *templates, const char *text,
                          bh_template *template_) {
    char *copy = strdup(text);
    if (!copy) {
        return;
    }
    bh_template_retain(template_);
    pthread_mutex_lock(&templates->lock);
    struct bhi_eval_template *row = &templates->rows[templates->next];
    const struct bhi_eval_template old = *row;
    *row = (struct bhi_eval_template){copy, template_};
    templates->next = (templates->next + 1) % BHI_EVAL_TEMPLATES;
    pthread_mutex_unlock(&templates->lock);
    bh_template_release(old.template_);
    free(old.text);
}

/* The text alone tells a plan's kernels apart: what a name in it stands for is the same each time. */
static bh_status take_template(const struct bhi_eval_use *use, const struct bhi_eval_kernel *kernel,
                               bh_template **out) {
    *out = find_template(use->plan->templates, kernel->text);
    if (*out) {
        return BH_OK;
    }
    bh_parameter parameters[BH_MAX_PARAMETERS] = {{0}};
    bh_template_options options = {.struct_size = sizeof options};
    for (uint32_t i = 0; i < kernel->form->count; i++) {
        parameters[i].name = kernel->form->parameters[i].name;
        parameters[i].role = (bh_parameter_role)kernel->form->parameters[i].role;
    }
    options.name = use->plan->name;
    options.expression = kernel->text;
    options.parameters = parameters;
    options.parameter_count = kernel->form->count;
    options.trusted = use->plan->trusted;
    options.compile_deadline_ns = use->plan->compile_deadline_ns;
    const bh_status status = bh_template_create(use->plan->context, &options, out, use->detail);
    if (status == BH_OK) {
        keep_template(use->plan->templates, kernel->text, *out);
    }
    return status;
}

bh_status bhi_eval_put_source(struct bhi_eval_use *use, bh_template *template_,
                              const bh_argument *arguments, uint32_t count) {
    size_t length;
    bh_status status =
        bh_template_source(template_, arguments, count, NULL, 0, &length, use->detail);
    char *text = status == BH_OK ? malloc(length + 1) : NULL;
    if (text) {
        status =
            bh_template_source(template_, arguments, count, text, length + 1, &length, use->detail);
        bhi_pen_put(use->source, "%s", text);
    } else if (status == BH_OK) {
        status = bhi_eval_fail_memory(use->detail);
    }
    free(text);
    return status;
}

/* Writes the arguments of a kernel: arrays first, of which the output is the last. */
static void put_arguments(struct bhi_eval_call *call, const struct bhi_eval_kernel *kernel,
                          const struct bhi_eval_value *output) {
    const struct bhi_form *form = kernel->form;
    *call = (struct bhi_eval_call){.first = NULL};
    for (uint32_t numbers = 0; numbers < 2; numbers++) {
        for (uint32_t i = 0; i < form->count; i++) {
            const bool last = i + 1 == form->count;
            const struct bhi_eval_value *own = last ? output : kernel->values[i];
            if (own->number != (numbers != 0)) {
                continue;
            }
            bh_argument *argument = &call->arguments[call->count];
            *argument = (bh_argument){.name = form->parameters[i].name,
                                      .buffer = own->buffer,
                                      .dtype = own->dtype,
                                      .bits = own->bits};
            if (own->number) {
                call->first = own->given ? call->first : argument;
            } else {
                bhi_eval_describe(own, &own->shape, &call->descriptions[call->count]);
                argument->description = &call->descriptions[call->count];
                call->arrays++;
            }
            call->count++;
        }
    }
}

bh_status bhi_eval_measure(struct bhi_eval_use *use, const struct bhi_eval_kernel *kernel,
                           struct bhi_piece_cut *cut) {
    static const struct bhi_eval_value nothing = {.dtype = BH_DTYPE_U8};
    struct bhi_eval_call call;
    put_arguments(&call, kernel, &nothing);
    return bhi_pieces_cut_operand(call.arguments, call.arrays - 1,
                                  8 * bhi_dtype_size(kernel->dtype), use->limits->bytes,
                                  use->limits->alignment, cut, use->detail);
}

/* Whether the kernel reads an input whose memory an output has taken. */
static bool reads_written(const struct bhi_eval_use *use, const struct bhi_eval_kernel *kernel) {
    for (uint32_t i = 0; i + 1 < kernel->form->count; i++) {
        const struct bhi_eval_value *own = kernel->values[i];
        if (own->given && own->buffer && own->buffer == use->written) {
            return true;
        }
    }
    return false;
}

bh_status bhi_eval_put_cut(struct bhi_eval_use *use, struct bhi_eval_kernel *kernel,
                           const struct bhi_piece_cut *cut, uint32_t parts,
                           struct bhi_eval_value *value) {
    struct bhi_eval_call call;
    bh_template *template_ = NULL;
    bh_status status = BH_OK;
    if (!value->buffer || bhi_dtype_computed(value->dtype) != kernel->dtype) {
        value->dtype = kernel->dtype;
    }
    if (!cut) {
        value->shape = kernel->reduced.result;
    }
    if (use->pieces && !value->buffer) {
        status = make_scratch(use, value);
    }
    if (status == BH_OK && use->pieces && reads_written(use, kernel)) {
        status =
            bhi_eval_fail(use->detail, BH_INVALID_ARGUMENT,
                          "an output is an input as well, which would be read after the output "
                          "is written: several kernels compute the expression");
    }
    if (!use->pieces || status != BH_OK) {
        bhi_eval_kernel_fini(kernel);
        return status;
    }
    const bool reduces = bhi_expression_reduction(&kernel->form->expression);
    put_arguments(&call, kernel, value);
    status = take_template(use, kernel, &template_);
    if (status == BH_OK && use->source) {
        status = bhi_eval_put_source(use, template_, call.arguments, call.count);
    } else if (status == BH_OK && cut) {
        status = bhi_pieces_reduce(use->pieces, template_, call.arguments, call.count, call.arrays,
                                   cut, parts, use->limits->alignment, call.first, use->detail);
    } else if (status == BH_OK && reduces) {
        status = bhi_pieces_add(use->pieces, template_, call.arguments, call.count, use->detail);
    } else if (status == BH_OK) {
        status = bhi_pieces_cut(use->pieces, template_, call.arguments, call.count, call.arrays,
                                use->limits->bytes, use->limits->alignment, use->detail);
    }
    bh_template_release(template_);
    bhi_eval_kernel_fini(kernel);
    return status;
}

bh_status bhi_eval_put(struct bhi_eval_use *use, struct bhi_eval_kernel *kernel,
                       struct bhi_eval_value *value) {
    return bhi_eval_put_cut(use, kernel, NULL, 0, value);
}

bh_status bhi_eval_look_at_stage(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage,
                                 const struct bhi_kernel_form *form, struct bhi_eval_kernel *out) {
    struct bhi_pen text = {0};
    bhi_kernel_stage_write(&use->plan->plan, stage, form, &text);
    return bhi_eval_look_at(use, &text, stage->target, out);
}
