#include "request/launch.h"

#include <string.h>

void bhi_run_request_bindings(const struct bhi_run_request *request, bh_binding *out_bindings) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        out_bindings[i] = (bh_binding){.set = given->slot.set,
                                       .binding = given->slot.binding,
                                       .buffer = given->buffer,
                                       .size = BH_WHOLE_SIZE,
                                       .access = given->access,
                                       .element = given->slot.element};
    }
}

void bhi_run_request_kernel_options(const struct bhi_run_request *request,
                                    bh_kernel_options *out_options) {
    bh_kernel_options_init(out_options);
    out_options->name = request->kernel_name;
    out_options->entry = request->entry;
    out_options->specializations = request->specs;
    out_options->specialization_count = request->spec_count;
    out_options->trusted = request->trusted;
}

void bhi_kernel_file_source(const struct bhi_kernel_file *file, bh_glsl_source *out_source) {
    bh_glsl_source_init(out_source);
    out_source->text = file->code;
    out_source->length = file->size;
    out_source->name = strcmp(file->path, "-") ? file->path : "stdin";
    out_source->defines = file->source.defines;
    out_source->define_count = file->source.define_count;
    out_source->includes = file->source.includes;
    out_source->include_count = file->source.include_count;
    out_source->language =
        bhi_kernel_file_language(file) == BHI_LANGUAGE_HLSL ? BH_LANGUAGE_HLSL : BH_LANGUAGE_GLSL;
    if (file->deadline_ns) {
        out_source->deadline_ns = file->deadline_ns;
    }
}
