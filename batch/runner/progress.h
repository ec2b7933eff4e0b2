/* The progress of a batch on standard error: one line that is updated on a terminal, elsewhere a
 * line now and then. Main thread. */
#ifndef BHI_BATCH_RUNNER_PROGRESS_H
#define BHI_BATCH_RUNNER_PROGRESS_H

#include "batch/queue/queue.h"

struct bhi_batch_progress {
    bool terminal, coloured, shown;
    uint64_t began_ns, told_ns;
    uint64_t ended_before; /* jobs that had ended when this process began */
    bool begun, over;
    size_t failures; /* lines that were printed of them, */
    size_t stuck;    /* of what could not be put in its place */
};

void bhi_progress_begin(struct bhi_batch_progress *progress);
/* Draws it anew where it is time to. */
void bhi_progress_update(struct bhi_batch_progress *progress,
                         const struct bhi_queue_counts *counts);
/* A line about a job that has failed, or (|verbose|) that is tried again. */
void bhi_progress_tell(struct bhi_batch_progress *progress, const struct bhi_job *job,
                       const struct bhi_attempt *attempt, bool verbose);
/* A line about one that is complete and cannot be put in its place. */
void bhi_progress_stuck(struct bhi_batch_progress *progress, const struct bhi_job *job,
                        const char *why);
/* A line about why nothing goes on. */
void bhi_progress_waits(struct bhi_batch_progress *progress, const char *why);
/* Takes the live line away; on what is no terminal prints the last plain one. */
void bhi_progress_end(struct bhi_batch_progress *progress, const struct bhi_queue_counts *counts);

#endif
