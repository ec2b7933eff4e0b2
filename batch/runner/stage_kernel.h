/* Staging a job's kernel: reads, compiles and checks it. */
#ifndef BHI_BATCH_RUNNER_STAGE_KERNEL_H
#define BHI_BATCH_RUNNER_STAGE_KERNEL_H

#include "batch/runner/state.h"

/* Returns true if work->kernel is made; false if the work is in another list, or over. */
bool bhi_stage_kernel(struct bhi_work *work);
/* Thread: a compiler. */
void bhi_stage_compile(struct bhi_work *work);

#endif
