/* Stages an attempt: makes the kernel and the buffers that it needs before it is submitted. Stager
 * threads call it. */
#ifndef BHI_BATCH_RUNNER_STAGE_H
#define BHI_BATCH_RUNNER_STAGE_H

#include "batch/runner/state.h"

/* Makes |work| ready, ends it, or puts it into a list in which it waits. Thread: a stager. */
void bhi_stage(struct bhi_work *work);

#endif
