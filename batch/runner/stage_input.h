/* Staging a job's inputs, and accounting for the memory that its buffers take. */
#ifndef BHI_BATCH_RUNNER_STAGE_INPUT_H
#define BHI_BATCH_RUNNER_STAGE_INPUT_H

#include "batch/runner/state.h"

/* Reserves memory for what the work binds. Returns false if it must wait for others. */
bool bhi_stage_reserve(struct bhi_work *work);
/* Makes the buffer of input |index|, or takes a kept one. Returns false if the work is over. */
bool bhi_stage_input(struct bhi_work *work, uint32_t index);

#endif
