/* --dry-run and --verify of `bulkhead batch`: they report on jobs and run none. */
#ifndef BHI_CLI_BATCH_LOOK_H
#define BHI_CLI_BATCH_LOOK_H

#include "batch/queue/queue.h"

struct bhi_batch_look {
    const char *jobs_path, *state;
    bool json, verbose;
    size_t bad; /* lines, which are no jobs */
};

/* --dry-run: prints what |queue|, which is dry and has all jobs, would run, in order. It has ended
 * them then. Returns an exit status. */
int bhi_batch_plan(struct bhi_queue *queue, const struct bhi_batch_look *look);
/* --verify: prints which outputs of |queue|'s jobs that are done are not what was written. Returns
 * an exit status. */
int bhi_batch_verify(struct bhi_queue *queue, const struct bhi_batch_look *look);

#endif
