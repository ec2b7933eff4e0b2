/* bh_template_…: what a caller sees of templates. Types and text are in templates/. */
#include "supervisor/compile/template.h"
#include "base/detail.h"
#include "base/text.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/freelist.h"
#include "supervisor/context/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_NS (60ull * 1000000000)
#define VARIANTS    64u
#define MAX_TEXT    (1u << 20) /* of GLSL */

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct bh_template);

/* -- creation --------------------------------------------------------------------------------- */

#define CREATE "bh_template_create"
#define REFUSE(detail, name, ...)                                                                  \
    BHI_FAIL(detail, CREATE, BH_REASON_ARGUMENT, name, .text = BHI_SAY(__VA_ARGS__))

static bh_status check_options(const bh_template_options *o, bh_detail *detail) {
    if (!o->body == !o->expression) {
        return REFUSE(detail, "options", "needs either body or expression");
    }
    if (o->expression && (o->grid || o->declarations)) {
        return REFUSE(detail, o->grid ? "options.grid" : "options.declarations",
                      "needs options.body");
    }
    if (o->parameter_count > BH_MAX_PARAMETERS || (o->parameter_count && !o->parameters)) {
        return REFUSE(detail, "options.parameters", "is NULL, or has %u elements, over %d",
                      o->parameter_count, BH_MAX_PARAMETERS);
    }
    if ((o->body && strlen(o->body) > MAX_TEXT) ||
        (o->declarations && strlen(o->declarations) > MAX_TEXT)) {
        return BHI_FAIL(detail, CREATE, BH_REASON_TOO_LONG, "options.body or options.declarations",
                        .limit = MAX_TEXT);
    }
    return BH_OK;
}

static bh_status take_parameter(const bh_parameter *given, uint32_t index,
                                struct bhi_parameter *out, bh_detail *detail) {
    if (!given->name || strlen(given->name) >= sizeof out->name) {
        return BHI_FAIL(detail, CREATE, BH_REASON_ARGUMENT, "options.parameters", .index = index,
                        .indexed = true,
                        .text = BHI_SAY("has no name, or its name is longer than %zu bytes",
                                        sizeof out->name - 1));
    }
    if (given->role < BH_PARAMETER_IN || given->role > BH_PARAMETER_PUSH) {
        return REFUSE(detail, given->name, "has role %d, which is not a bh_parameter_role",
                      (int)given->role);
    }
    if (given->type && strlen(given->type) >= sizeof out->variable) {
        return REFUSE(detail, given->name, "has a type whose name is longer than %zu bytes",
                      sizeof out->variable - 1);
    }
    *out = (struct bhi_parameter){.role = (enum bhi_role)given->role, .dtype = BH_DTYPE_NONE};
    strcpy(out->name, given->name);
    if (given->type && !bhi_dtype_find_element(given->type, strlen(given->type), &out->dtype)) {
        out->dtype = BH_DTYPE_NONE;
        strcpy(out->variable, given->type);
    }
    return BH_OK;
}

/* Copies the name. Characters that may not be in a #line directive become '_'. */
static void take_name(const char *name, char out[64]) {
    snprintf(out, 64, "%s", name);
    for (char *c = out; *c; c++) {
        const bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                           (*c >= 'A' && *c <= 'Z') || strchr("_-.+", *c);
        *c = plain ? *c : '_';
    }
}

static bh_status take_form(struct bhi_form *form, const bh_template_options *options,
                           const char *name, bh_detail *detail) {
    struct bhi_complaint complaint;
    bh_status status = BH_OK;
    take_name(name, form->name);
    form->grid = options->grid;
    memcpy(form->local_size, options->local_size, sizeof form->local_size);
    for (; form->count < options->parameter_count && status == BH_OK; form->count++) {
        status = take_parameter(&options->parameters[form->count], form->count,
                                &form->parameters[form->count], detail);
    }
    if (status != BH_OK) {
        return status;
    }
    form->is_expression = options->expression;
    if (form->is_expression &&
        !bhi_expression_parse(options->expression, strlen(options->expression), &form->expression,
                              &complaint)) {
        return bhi_template_fail(&complaint, CREATE, detail);
    }
    form->body = options->body ? strdup(options->body) : NULL;
    form->declarations = options->declarations ? strdup(options->declarations) : NULL;
    if (!form->body != !options->body || !form->declarations != !options->declarations) {
        return BHI_FAIL(detail, CREATE, BH_REASON_MEMORY);
    }
    return bhi_form_check(form, &complaint) ? BH_OK : bhi_template_fail(&complaint, CREATE, detail);
}

BH_API bh_status bh_template_create(bh_context *context, const bh_template_options *given,
                                    bh_template **out_template, bh_detail *detail) {
    BHI_NEED(out_template, CREATE, detail);
    *out_template = NULL;
    BHI_TRY(bhi_context_check(context, CREATE, detail));
    if (!given) {
        return BHI_FAIL(detail, CREATE, BH_REASON_NULL, "options");
    }
    static const uint32_t local_size[3] = {64, 1, 1};
    bh_template_options all;
    const bh_template_options *options = &all;
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_template_options), &all, given, CREATE, "options", detail));
    for (int i = 0; i < 3; i++) {
        all.local_size[i] = all.local_size[i] ? all.local_size[i] : local_size[i];
    }
    all.variants = all.variants ? all.variants : VARIANTS;
    BHI_TRY(check_options(options, detail));
    struct bh_template *t = bhi_freelist_take(&freelist);
    if (!t) {
        return BHI_FAIL(detail, CREATE, BH_REASON_MEMORY);
    }
    *t = (struct bh_template){.context = context,
                              .trusted = options->trusted,
                              .compile_deadline_ns = options->compile_deadline_ns
                                                         ? options->compile_deadline_ns
                                                         : DEADLINE_NS,
                              .capacity = options->variants};
    const char *name = options->name ? options->name : "template";
    bhi_text_line(t->name, sizeof t->name, name, strlen(name));
    bh_status status = take_form(&t->form, options, t->name, detail);
    if (status != BH_OK) {
        bhi_form_fini(&t->form);
        bhi_freelist_give(&freelist, t);
        return status;
    }
    bhi_context_retain(context);
    bhi_list_init(&t->variants);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    atomic_init(&t->handle.count, 1);
    *out_template = t;
    return BH_OK;
}

BH_API void bh_template_retain(bh_template *template_) {
    if (template_) {
        (void)bhi_handle_retain(&template_->handle);
    }
}

BH_API void bh_template_release(bh_template *template_) {
    if (template_ && bhi_context_drop(&template_->handle, template_->context)) {
        bh_context *context = template_->context;
        bhi_template_drop_variants(template_);
        pthread_mutex_destroy(&template_->lock);
        pthread_cond_destroy(&template_->changed);
        bhi_form_fini(&template_->form);
        bhi_freelist_give(&freelist, template_);
        bhi_context_unref(context);
    }
}

/* -- use -------------------------------------------------------------------------------------- */

/* Takes a reference to the template for the time of the call, and binds the arguments. */
static bh_status hold(bh_template *t, const bh_argument *arguments, uint32_t count, bool complete,
                      const char *call, struct bhi_bound *out_bound, bh_detail *detail) {
    if (!t || !bhi_handle_retain(&t->handle)) {
        return BHI_FAIL(detail, call, BH_REASON_RELEASED, "template");
    }
    bh_status status = bhi_context_check(t->context, call, detail);
    if (status == BH_OK) {
        status = bhi_template_bind(t, arguments, count, complete, call, out_bound, detail);
    }
    if (status != BH_OK) {
        bh_template_release(t);
    }
    return status;
}

BH_API bh_status bh_template_output(bh_template *template_, const bh_argument *arguments,
                                    uint32_t argument_count, const char *name,
                                    bh_description *out_description, bh_detail *detail) {
    static const char call[] = "bh_template_output";
    struct bhi_bound bound;
    BHI_NEED(name, call, detail);
    BHI_TRY(bhi_layout_check(BHI_OURS(bh_description), out_description, call, "out_description",
                             detail));
    BHI_TRY(hold(template_, arguments, argument_count, false, call, &bound, detail));
    bh_description description;
    const bh_status status =
        bhi_template_describe(template_, &bound, name, call, &description, detail);
    if (status == BH_OK) {
        bhi_layout_give(out_description, &description, sizeof description);
    }
    bh_template_release(template_);
    return status;
}

BH_API bh_status bh_template_source(bh_template *template_, const bh_argument *arguments,
                                    uint32_t argument_count, char *text, size_t size,
                                    size_t *out_length, bh_detail *detail) {
    static const char call[] = "bh_template_source";
    struct bhi_bound bound;
    struct bhi_complaint complaint;
    struct bhi_pen pen = {0};
    BHI_NEED(out_length, call, detail);
    if (size) {
        BHI_NEED(text, call, detail);
    }
    bh_status status = BH_OK;
    BHI_TRY(hold(template_, arguments, argument_count, false, call, &bound, detail));
    if (!bhi_form_write(&template_->form, &bound.variant, &pen, &complaint)) {
        status = bhi_template_fail(&complaint, call, detail);
    } else {
        *out_length = pen.length;
        if (size) {
            snprintf(text, size, "%s", pen.text);
        }
    }
    bhi_pen_fini(&pen);
    bh_template_release(template_);
    return status;
}

static bh_status prepare(bh_template *t, const bh_argument *arguments, uint32_t argument_count,
                         const uint32_t *groups, const char *call, bh_template_call *out_call,
                         bh_detail *detail) {
    struct bhi_bound bound;
    BHI_TRY(hold(t, arguments, argument_count, true, call, &bound, detail));
    bh_status status = bhi_template_command(t, &bound, groups, call, out_call, detail);
    if (status == BH_OK) {
        status = bhi_template_kernel(t, &bound.variant, call, &out_call->command.dispatch.kernel,
                                     detail);
    }
    bh_template_release(t);
    return status;
}

BH_API bh_status bh_template_prepare(bh_template *template_, const bh_argument *arguments,
                                     uint32_t argument_count, const uint32_t *groups,
                                     bh_template_call *out_call, bh_detail *detail) {
    static const char call[] = "bh_template_prepare";
    BHI_NEED(out_call, call, detail);
    *out_call = (bh_template_call){0};
    return prepare(template_, arguments, argument_count, groups, call, out_call, detail);
}

BH_API void bh_template_call_fini(bh_template_call *call) {
    if (!call) {
        return;
    }
    bh_kernel_release(call->command.dispatch.kernel);
    call->command.dispatch.kernel = NULL;
}

BH_API bh_status bh_template_launch(bh_stream *stream, bh_template *template_,
                                    const bh_argument *arguments, uint32_t argument_count,
                                    const uint32_t *groups, bh_event **out_event,
                                    bh_detail *detail) {
    bh_template_call call = {0};
    if (out_event) {
        *out_event = NULL;
    }
    bh_status status =
        prepare(template_, arguments, argument_count, groups, "bh_template_launch", &call, detail);
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &call.command, .command_count = 1};
    if (status == BH_OK) {
        status = bh_submit(stream, &info, out_event, detail);
    }
    bh_template_call_fini(&call);
    return status;
}
