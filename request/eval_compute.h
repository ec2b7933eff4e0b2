/* Makes the plan and the arrays of a `bulkhead eval` request. */
#ifndef BHI_REQUEST_EVAL_COMPUTE_H
#define BHI_REQUEST_EVAL_COMPUTE_H

#include "request/eval.h"
#include "request/eval_plan.h"

bh_status bhi_eval_make_plan(const struct bhi_eval_request *eval, bh_context *context,
                             uint64_t compile_deadline_ns, struct bhi_eval_plan **out_plan,
                             bh_detail *detail);
/* Makes the inputs' buffers, which have been loaded or filled, arguments. *out_bad is the binding
 * that was refused. */
bh_status bhi_eval_take_inputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                               const struct bhi_run_binding **out_bad, bh_detail *detail);
/* Infers the arrays of the outputs' bindings from the inputs. */
bh_status bhi_eval_infer_outputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                                 struct bhi_eval_plan *plan, bh_detail *detail);
/* Makes the outputs' buffers arguments. */
bh_status bhi_eval_take_outputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                                bh_detail *detail);

#endif
