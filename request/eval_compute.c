#include "request/eval_compute.h"
#include "base/format.h"
#include "request/eval_kernel.h"
#include <bulkhead/file.h>

#include <stdio.h>
#include <string.h>

bh_status bhi_eval_make_plan(const struct bhi_eval_request *eval, bh_context *context,
                             uint64_t compile_deadline_ns, struct bhi_eval_plan **out_plan,
                             bh_detail *detail) {
    bh_template_options options = {.struct_size = sizeof options};
    options.name = "eval";
    if (compile_deadline_ns) {
        options.compile_deadline_ns = compile_deadline_ns;
    }
    options.expression = eval->expression;
    options.parameters = eval->parameters;
    options.parameter_count = eval->count;
    return bhi_eval_plan_create(context, &options, out_plan, detail);
}

/* Describes the content of a buffer that no loader has filled. */
static bh_status describe(const struct bhi_run_binding *binding, bh_detail *detail) {
    const struct bhi_array *array = &binding->array;
    bh_description description = {.struct_size = sizeof description};
    description.kind = bhi_dtype_number(array->dtype);
    description.bits = 8 * bhi_dtype_size(array->dtype);
    description.rank = array->dimensions;
    memcpy(description.shape, array->shape, array->dimensions * sizeof array->shape[0]);
    return bh_buffer_set_description(binding->buffer, &description, detail);
}

bh_status bhi_eval_take_inputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                               const struct bhi_run_binding **out_bad, bh_detail *detail) {
    for (uint32_t i = 0; i < eval->inputs; i++) {
        const struct bhi_run_binding *binding = *out_bad = &request->bindings[i];
        bh_array_info info = {.struct_size = sizeof info};
        const bool loaded = bh_buffer_array(binding->buffer, &info, NULL) == BH_OK;
        const bh_status status = loaded ? BH_OK : describe(binding, detail);
        if (status != BH_OK) {
            return status;
        }
        eval->arguments[i].buffer = binding->buffer;
    }
    return BH_OK;
}

bh_status bhi_eval_infer_outputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                                 struct bhi_eval_plan *plan, bh_detail *detail) {
    struct bhi_complaint complaint;
    for (uint32_t i = eval->inputs; i < eval->inputs + eval->outputs; i++) {
        struct bhi_array *array = &request->bindings[i].array;
        bh_description d = {.struct_size = sizeof d};
        const bh_status status = bhi_eval_plan_output(plan, eval->arguments, eval->count,
                                                      eval->parameters[i].name, &d, detail);
        if (status != BH_OK) {
            return status;
        }
        (void)bhi_dtype_find_number(d.kind, d.bits, &array->dtype);
        const bh_dtype wanted = request->bindings[i].wanted_dtype;
        if (wanted && bhi_dtype_computed(wanted) != array->dtype) {
            bhi_refuse_output(eval->parameters[i].name, wanted, array->dtype, &complaint);
            return bhi_eval_refuse(detail, &complaint);
        }
        array->dtype = wanted ? wanted : array->dtype;
        array->dimensions = d.rank;
        memcpy(array->shape, d.shape, d.rank * sizeof d.shape[0]);
        if (!bhi_array_measure(array, &complaint)) {
            bhi_format(detail->message, sizeof detail->message, "%.400s", complaint.text);
            return detail->status = BH_TOO_LARGE;
        }
    }
    return BH_OK;
}

bh_status bhi_eval_take_outputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                                bh_detail *detail) {
    bh_status status = BH_OK;
    for (uint32_t i = eval->inputs; i < eval->inputs + eval->outputs && status == BH_OK; i++) {
        eval->arguments[i].buffer = request->bindings[i].buffer;
        status = describe(&request->bindings[i], detail);
    }
    return status;
}
