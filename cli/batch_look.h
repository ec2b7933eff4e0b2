/* --dry-run and --verify of `bulkhead batch`: they report on jobs and run none. */
#ifndef BHI_CLI_BATCH_LOOK_H
#define BHI_CLI_BATCH_LOOK_H

#include "batch/queue/queue.h"

struct bhi_batch_look {
    const char *jobs_path, *state;
    bool json, verbose;
    size_t bad; /* bad lines, which are no jobs */
};

/* --dry-run: prints in which order |queue| would run its jobs. |queue| must be dry and have all
 * jobs; this ends them. Returns an exit status. */
int bhi_batch_plan(struct bhi_queue *queue, const struct bhi_batch_look *look);
/* --verify: prints which outputs of |queue|'s finished jobs differ from what was written. Returns
 * an exit status. */
int bhi_batch_verify(struct bhi_queue *queue, const struct bhi_batch_look *look);

#endif
