/* Taking in what a worker has completed, and where it says that it is. Lock held; any thread; not
 * while a submission ends. */
#ifndef BHI_SUPERVISOR_EVENT_HARVEST_H
#define BHI_SUPERVISOR_EVENT_HARVEST_H

#include "supervisor/worker/worker_proc.h"

void bhi_worker_harvest(struct bhi_worker *worker);
/* What it says of where it is. */
struct bhi_progress_snapshot bhi_worker_progress_snapshot(const struct bhi_worker *worker);
/* It says that it compiles what it has run: that is a lie (T6). */
bool bhi_worker_pretends(const struct bhi_worker *worker,
                         const struct bhi_progress_snapshot *snapshot);
#define BHI_PRETENDED "it claims to compile a kernel that it has run"
/* When its oldest submission is over its deadline, at the earliest; BHI_FOREVER. Has that ended,
 * or kills it, when that is now. */
uint64_t bhi_worker_check_deadline(struct bhi_worker *worker, uint64_t now_ns);

/* It is dead: what it was to make and had not answered is unmade. Lock held. */
void bhi_worker_makes_lost(struct bhi_worker *worker);

#endif
