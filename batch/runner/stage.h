/* Stages an attempt: makes the kernel and the buffers that it needs before it is submitted. Stager
 * threads call it. */
#ifndef BHI_BATCH_RUNNER_STAGE_H
#define BHI_BATCH_RUNNER_STAGE_H

#include "batch/runner/state.h"

/* Makes |work| ready, ends it, or puts it into a list in which it waits. Thread: a stager. */
void bhi_stage(struct bhi_work *work);

/* -- its parts, each in a file of its own --------------------------------------------------------- */

/* stage_kernel.c: reads, compiles and checks the kernel. */

/* Returns true if work->kernel is made; false if the work is in another list, or over. */
bool bhi_stage_kernel(struct bhi_work *work);
/* Thread: a compiler. */
void bhi_stage_compile(struct bhi_work *work);

/* stage_input.c: inputs, and accounting for the memory that buffers take. */

/* Reserves memory for what the work binds. Returns false if it must wait for others. */
bool bhi_stage_reserve(struct bhi_work *work);
/* Makes the buffer of input |index|, or takes a kept one. Returns false if the work is over. */
bool bhi_stage_input(struct bhi_work *work, uint32_t index);

/* stage_eval.c: a job with "eval", a template and its arrays. */

/* Makes work->plan. Returns false if the work is over. */
bool bhi_stage_template(struct bhi_work *work);
/* Infers the outputs, when the inputs have buffers. Returns false if the work is over. */
bool bhi_stage_infer(struct bhi_work *work);
/* Makes the commands to submit, when all have buffers. Blocks while a kernel is compiled. Returns
 * false if the work is over. */
bool bhi_stage_cut(struct bhi_work *work);
void bhi_templates_free(struct bhi_runner *runner);

#endif
