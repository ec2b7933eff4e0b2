/* Reads a worker's results and its progress. Lock held; any thread; not while a submission ends. */
#ifndef BHI_SUPERVISOR_EVENT_HARVEST_H
#define BHI_SUPERVISOR_EVENT_HARVEST_H

#include "supervisor/worker/worker_proc.h"

void bhi_worker_harvest(struct bhi_worker *worker);
/* Returns the progress that the worker reports. */
struct bhi_progress_snapshot bhi_worker_progress_snapshot(const struct bhi_worker *worker);
/* Returns true if the worker reports that it compiles a kernel that it has run, which is a lie
 * (T6). */
bool bhi_worker_pretends(const struct bhi_worker *worker,
                         const struct bhi_progress_snapshot *snapshot);
#define BHI_PRETENDED "it claims to compile a kernel that it has run"
/* Returns when to check again for a passed deadline; BHI_FOREVER: no need. If one has passed, makes
 * the worker stop the submission, or kills the worker. */
uint64_t bhi_worker_check_deadline(struct bhi_worker *worker, uint64_t now_ns);

/* The worker is dead: device memory that it was to make or to clear, and has not answered for, is
 * UNMADE or STALE again. Lock held. */
void bhi_worker_makes_lost(struct bhi_worker *worker);

#endif
