/* Templates. All outputs are like the first input. */
#include "script.h"
#include <bulkhead/template.h>
#include <stdio.h>
#include <stdlib.h>

struct bh_template {
    int unused;
};

bh_status bh_buffer_set_description(bh_buffer *buffer, const bh_description *description,
                                    bh_detail *detail) {
    return BH_OK;
}

/* All are bytes. */
bh_status bh_buffer_description(bh_buffer *buffer, bh_description *out_description,
                                bh_detail *detail) {
    out_description->kind = BH_NUMBER_UINT;
    out_description->bits = 8;
    out_description->rank = 1;
    out_description->shape[0] = buffer->size;
    return BH_OK;
}

void bh_template_call_fini(bh_template_call *call) {
    bh_kernel_release(call->command.dispatch.kernel);
}

bh_status bh_template_create(bh_context *context, const bh_template_options *options,
                             bh_template **out_template, bh_detail *detail) {
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "template: compile %llu\n",
                (unsigned long long)options->compile_deadline_ns);
    }
    bh_status status = script_answer("SCRIPT_TEMPLATE", detail);
    if (status == BH_OK) {
        *out_template = script_new(sizeof **out_template);
    }
    return status;
}

void bh_template_release(bh_template *template_) {
    script_free(template_);
}

bh_status bh_template_output(bh_template *template_, const bh_argument *arguments,
                             uint32_t argument_count, const char *name,
                             bh_description *out_description, bh_detail *detail) {
    out_description->kind = BH_NUMBER_FLOAT;
    out_description->bits = 32;
    out_description->lanes = 1;
    out_description->rank = 1;
    out_description->shape[0] = bh_buffer_size(arguments[0].buffer) / 4;
    return script_answer("SCRIPT_OUTPUT", detail);
}

bh_status bh_template_source(bh_template *template_, const bh_argument *arguments,
                             uint32_t argument_count, char *text, size_t size, size_t *out_length,
                             bh_detail *detail) {
    *out_length = (size_t)snprintf(text, size, "as scripted\n");
    return script_answer("SCRIPT_SOURCE", detail);
}

bh_status bh_template_prepare(bh_template *template_, const bh_argument *arguments,
                              uint32_t argument_count, const uint32_t *groups,
                              bh_template_call *out_call, bh_detail *detail) {
    *out_call =
        (bh_template_call){.command = {.dispatch.groups = {1, 1, 1}, .dispatch.push_size = 4}};
    const bh_kernel_options options = {.name = "eval"};
    return bh_kernel_create_spirv(NULL, NULL, 0, &options, &out_call->command.dispatch.kernel,
                                  detail);
}
