/* Staging a job with "eval": a template and its arrays. */
#ifndef BHI_BATCH_RUNNER_STAGE_EVAL_H
#define BHI_BATCH_RUNNER_STAGE_EVAL_H

#include "batch/runner/state.h"

/* Makes work->template_. Returns false if the work is over. */
bool bhi_stage_template(struct bhi_work *work);
/* Infers the outputs, when the inputs have buffers. Returns false if the work is over. */
bool bhi_stage_infer(struct bhi_work *work);
/* Makes the commands to submit, when all have buffers. Blocks while a kernel is compiled. Returns
 * false if the work is over. */
bool bhi_stage_cut(struct bhi_work *work);
/* Returns the largest file for which all arrays of the work are computed in one piece. Such an
 * input may be shared, because its buffer is never described again. */
uint64_t bhi_stage_whole(const struct bhi_work *work);
void bhi_templates_free(struct bhi_runner *runner);

#endif
