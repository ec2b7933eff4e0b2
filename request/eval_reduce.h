/* The kernels of a stage that is a reduction. */
#ifndef BHI_REQUEST_EVAL_REDUCE_H
#define BHI_REQUEST_EVAL_REDUCE_H

#include "request/eval_kernel.h"

/* Computes |stage| as |form| says to |out|, whatever its reduction is by. */
bh_status bhi_eval_reduce(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage,
                          const struct bhi_kernel_form *form, enum bhi_reducer reducer,
                          struct bhi_eval_value *out);
/* argmin (|least|) and argmax. */
bh_status bhi_eval_find_index(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage,
                              bool least, bool keepdims, struct bhi_eval_value *out);

#endif
