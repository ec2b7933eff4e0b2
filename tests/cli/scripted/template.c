/* Templates. All outputs are like the first input. */
#include "script.h"
#include <stdio.h>
#include <stdlib.h>

struct bh_template {
    int unused;
};

void bh_description_init_sized(bh_description *description, size_t size) {
    *description = (bh_description){.struct_size = size, .lanes = 1};
}

bh_status bh_buffer_set_description(bh_buffer *buffer, const bh_description *description,
                                    bh_detail *detail) {
    (void)buffer;
    (void)description;
    (void)detail;
    return BH_OK;
}

/* All are bytes. */
bh_status bh_buffer_description(bh_buffer *buffer, bh_description *out_description,
                                bh_detail *detail) {
    (void)detail;
    out_description->kind = BH_NUMBER_UINT;
    out_description->bits = 8;
    out_description->rank = 1;
    out_description->shape[0] = buffer->size;
    return BH_OK;
}

void bh_template_call_fini(bh_template_call *call) {
    bh_kernel_release(call->command.kernel);
}

void bh_template_options_init_sized(bh_template_options *options, size_t size) {
    *options = (bh_template_options){.struct_size = size};
}

bh_status bh_template_create(bh_context *context, const bh_template_options *options,
                             bh_template **out_template, bh_detail *detail) {
    (void)context;
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "template: compile %llu\n",
                (unsigned long long)options->compile_deadline_ns);
    }
    bh_status status = script_answer("SCRIPT_TEMPLATE", detail);
    if (status == BH_OK) {
        *out_template = calloc(1, sizeof **out_template);
    }
    return status;
}

bh_status bh_template_release(bh_template *template_) {
    free(template_);
    return BH_OK;
}

bh_status bh_template_output_sized(bh_template *template_, const bh_argument *arguments,
                                   uint32_t argument_count, size_t argument_size, const char *name,
                                   bh_description *out_description, bh_detail *detail) {
    (void)argument_size;
    (void)template_;
    (void)argument_count;
    (void)name;
    out_description->kind = BH_NUMBER_FLOAT;
    out_description->bits = 32;
    out_description->rank = 1;
    out_description->shape[0] = bh_buffer_size(arguments[0].buffer) / 4;
    return script_answer("SCRIPT_OUTPUT", detail);
}

bh_status bh_template_source_sized(bh_template *template_, const bh_argument *arguments,
                                   uint32_t argument_count, size_t argument_size, char *text,
                                   size_t size, size_t *out_length, bh_detail *detail) {
    (void)argument_size;
    (void)template_;
    (void)arguments;
    (void)argument_count;
    *out_length = (size_t)snprintf(text, size, "as scripted\n");
    return script_answer("SCRIPT_SOURCE", detail);
}

bh_status bh_template_prepare_sized(bh_template *template_, const bh_argument *arguments,
                                    uint32_t argument_count, size_t argument_size,
                                    const uint32_t *groups, bh_template_call *out_call,
                                    size_t command_size, size_t binding_size, bh_detail *detail) {
    (void)argument_size;
    (void)command_size;
    (void)binding_size;
    (void)template_;
    (void)arguments;
    (void)argument_count;
    (void)groups;
    *out_call = (bh_template_call){.command = {.groups = {1, 1, 1}, .push_size = 4}};
    const bh_kernel_options options = {.name = "eval"};
    return bh_kernel_create_spirv(NULL, NULL, 0, &options, &out_call->command.kernel, detail);
}
