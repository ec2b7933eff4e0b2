/* Finishes jobs: writes their results to files, completely, and renames these. Finisher threads
 * call it. */
#ifndef BHI_BATCH_RUNNER_FINISH_H
#define BHI_BATCH_RUNNER_FINISH_H

#include "batch/runner/state.h"

/* Threads: finishers. Each of the |count| works ends or goes on. */
void bhi_finish_write(struct bhi_work **works, size_t count);
void bhi_finish_place(struct bhi_work **works, size_t count);
/* Removes the temporary files of an attempt. */
void bhi_finish_sweep(struct bhi_work *work);

#endif
