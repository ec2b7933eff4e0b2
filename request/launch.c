#include "request/launch.h"

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
    *out_options = (bh_kernel_options){.struct_size = sizeof(bh_kernel_options)};
    out_options->name = request->kernel_name;
    out_options->entry = request->entry;
    out_options->specializations = request->specs;
    out_options->specialization_count = request->spec_count;
    out_options->trusted = request->trusted;
}
