#include "request/run.h"

#include <stdlib.h>
#include <string.h>

#include "request/kernel_file.h"

bool bhi_run_request_init(struct bhi_run_request *request, const char *kernel_path, size_t items,
                          struct bhi_complaint *complaint) {
    *request = (struct bhi_run_request){.command = "run",
                                        .repeat = 1,
                                        .memory = BH_MEMORY_AUTO,
                                        .kernel_path = kernel_path,
                                        .groups = {1, 1, 1}};
    bhi_kernel_file_name(kernel_path, request->kernel_name);
    request->bindings = calloc((items < BHI_MAX_BINDINGS ? items : BHI_MAX_BINDINGS) + 1,
                               sizeof *request->bindings);
    return request->bindings ? true : bhi_refuse_memory(complaint);
}

void bhi_run_request_free(struct bhi_run_request *request) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        bhi_binding_fini(&request->bindings[i]);
    }
    bhi_source_free(&request->source);
    free(request->bindings);
    free(request->eval);
    request->bindings = NULL;
    request->eval = NULL;
    request->binding_count = 0;
}

struct bhi_run_binding *bhi_run_request_find(const struct bhi_run_request *request,
                                             struct bhi_slot slot) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (bhi_slot_is(binding->slot, slot)) {
            return binding;
        }
    }
    return NULL;
}

void bhi_run_request_bindings(const struct bhi_run_request *request, bh_binding *out_bindings) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        /* An image does not say what it writes: it may leave a part of an output as it was. */
        const bh_access access = request->image && given->access == BH_ACCESS_WRITE
                                     ? BH_ACCESS_READ_WRITE
                                     : given->access;
        out_bindings[i] = (bh_binding){.set = given->slot.set,
                                       .binding = given->slot.binding,
                                       .buffer = given->buffer,
                                       .size = BH_WHOLE_SIZE,
                                       .access = access,
                                       .element = given->slot.element};
    }
}

bh_command bhi_run_request_command(const struct bhi_run_request *request, bh_kernel *kernel,
                                   bh_binding *bindings) {
    bhi_run_request_bindings(request, bindings);
    bh_command command = {.type = BH_COMMAND_DISPATCH,
                          .dispatch = {.kernel = kernel,
                                       .bindings = bindings,
                                       .binding_count = request->binding_count,
                                       .push = request->push.bytes,
                                       .push_size = request->push.size,
                                       .shared_bytes = request->shared_bytes}};
    memcpy(command.dispatch.groups, request->groups, sizeof request->groups);
    memcpy(command.dispatch.block, request->block, sizeof request->block);
    return command;
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
