/* Makes the template and the arrays of a `bulkhead eval` request. */
#ifndef BHI_REQUEST_EVAL_COMPUTE_H
#define BHI_REQUEST_EVAL_COMPUTE_H

#include "request/eval.h"

bh_status bhi_eval_template(const struct bhi_eval_request *eval, bh_context *context,
                            uint64_t compile_deadline_ns, bh_template **out_template,
                            bh_detail *detail);
/* Makes the inputs' buffers, which have been loaded or filled, arguments. *out_bad is the binding
 * that was refused. */
bh_status bhi_eval_take_inputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                               const struct bhi_run_binding **out_bad, bh_detail *detail);
/* Infers the arrays of the outputs' bindings from the inputs. */
bh_status bhi_eval_infer_outputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                                 bh_template *template_, bh_detail *detail);
/* Makes the outputs' buffers arguments. */
bh_status bhi_eval_take_outputs(struct bhi_eval_request *eval, struct bhi_run_request *request,
                                bh_detail *detail);

#endif
