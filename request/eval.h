/* What `bulkhead eval` was asked to compute; a job of a batch that says "eval" is parsed with it,
 * too. The bindings of the run's request are the inputs, then the outputs: in this order the
 * template binds them. */
#ifndef BHI_REQUEST_EVAL_H
#define BHI_REQUEST_EVAL_H

#include "request/fill.h"

enum { BHI_EVAL_NAME = 63 };

/* It must stay where it is: parameters and arguments point to the names. */
struct bhi_eval_request {
    const char *expression; /* borrowed */
    char names[BH_MAX_PARAMETERS][BHI_EVAL_NAME + 1];
    bh_parameter parameters[BH_MAX_PARAMETERS]; /* inputs, outputs, numbers */
    bh_argument arguments[BH_MAX_PARAMETERS];   /* of each */
    uint32_t inputs, outputs, count;
    uint64_t piece; /* bytes of an array that a submission binds at most; 0: what the device can */
};

/* Fill in request->eval. All inputs come first, then all outputs, then all numbers. */
bhi_run_pair bhi_eval_add_input, bhi_eval_add_output, bhi_eval_add_number;
bhi_run_text bhi_eval_set_piece;

#endif
