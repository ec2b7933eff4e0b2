/* Finishing a job: writes its results to files, completely, and renames them into place. Finisher
 * threads call it. */
#ifndef BHI_BATCH_RUNNER_FINISH_H
#define BHI_BATCH_RUNNER_FINISH_H

#include "batch/runner/state.h"

/* Threads: finishers. |count| works, of which each ends or goes on. */
void bhi_finish_write(struct bhi_work **works, size_t count);
void bhi_finish_place(struct bhi_work **works, size_t count);
/* Removes what an attempt has left under temporary names. */
void bhi_finish_sweep(struct bhi_work *work);

#endif
