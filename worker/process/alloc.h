/* Counts failed allocations in progress.refused_allocations. By this count the supervisor tells a
 * death at the memory limit from any other. The interposers are in the worker's executable, so the
 * driver's calls reach them too. */
#ifndef BHI_WORKER_PROCESS_ALLOC_H
#define BHI_WORKER_PROCESS_ALLOC_H

#include "ipc/progress.h"

/* From now on failed allocations are counted in |header|. */
void bhi_alloc_watch(struct bhi_progress_header *header);

#endif
