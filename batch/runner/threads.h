/* The runner's threads. */
#ifndef BHI_BATCH_RUNNER_THREADS_H
#define BHI_BATCH_RUNNER_THREADS_H

#include "batch/runner/state.h"

bool bhi_runner_start_threads(struct bhi_runner *runner, struct bhi_complaint *complaint);
void bhi_runner_end_threads(struct bhi_runner *runner);

#endif
