/* Counts allocations that fail, in progress.refused_allocations: they tell a death by memory
 * limit from any other. The interposers are in the worker's executable, so that
 * the driver's calls end there too. */
#ifndef BHI_WORKER_FAULTS_ALLOC_H
#define BHI_WORKER_FAULTS_ALLOC_H

#include "ipc/progress.h"

/* From here on refusals are counted in |header|. */
void bhi_alloc_watch(struct bhi_progress_header *header);

#endif
