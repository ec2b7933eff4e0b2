/* Staging an attempt: makes the kernel and the buffers that it needs before it is submitted.
 * Stager threads. */
#ifndef BHI_BATCH_RUNNER_STAGE_H
#define BHI_BATCH_RUNNER_STAGE_H

#include "batch/runner/state.h"

/* Makes |work| ready, or ends it, or leaves it in a list. Thread: a stager. */
void bhi_stage(struct bhi_work *work);

#endif
