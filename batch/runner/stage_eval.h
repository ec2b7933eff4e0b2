/* Staging a job with "eval": a template and its arrays. */
#ifndef BHI_BATCH_RUNNER_STAGE_EVAL_H
#define BHI_BATCH_RUNNER_STAGE_EVAL_H

#include "batch/runner/state.h"

/* True: work->template_ is made. False: the work is over. */
bool bhi_stage_template(struct bhi_work *work);
/* The inputs have buffers: what the outputs are. False: the work is over. */
bool bhi_stage_infer(struct bhi_work *work);
/* All have buffers: what is submitted. Blocks while a kernel is compiled. False: the work is over.
 */
bool bhi_stage_cut(struct bhi_work *work);
/* How many bytes a file may have for all arrays of the work to be computed in one piece; such an
 * input may be shared, as it is never described anew. */
uint64_t bhi_stage_whole(const struct bhi_work *work);
void bhi_templates_free(struct bhi_runner *runner);

#endif
