/* What `bulkhead eval` was asked to compute; also used for a job of a batch with "eval". The
 * bindings of the run's request are first the inputs, then the outputs, in the order in which the
 * template binds them. */
#ifndef BHI_REQUEST_EVAL_H
#define BHI_REQUEST_EVAL_H

#include "request/fill.h"
#include <bulkhead/template.h>

enum { BHI_EVAL_NAME = 63 };

/* It must not be moved: parameters and arguments point to the names. */
struct bhi_eval_request {
    const char *expression; /* borrowed */
    char names[BH_MAX_PARAMETERS][BHI_EVAL_NAME + 1];
    bh_parameter parameters[BH_MAX_PARAMETERS]; /* inputs, outputs, numbers */
    bh_argument arguments[BH_MAX_PARAMETERS];   /* one for each parameter */
    uint32_t inputs, outputs, count;
    uint64_t piece; /* the most bytes of an array in a submission; 0: the device's limit */
};

/* These fill in request->eval. All inputs must come first, then all outputs, then all numbers. */
bhi_run_pair bhi_eval_add_input, bhi_eval_add_output, bhi_eval_add_number;
bhi_run_text bhi_eval_set_piece;

#endif
