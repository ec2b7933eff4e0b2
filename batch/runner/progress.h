/* The progress of a batch on standard error: on a terminal one line that is updated, elsewhere a
 * line from time to time. Main thread. */
#ifndef BHI_BATCH_RUNNER_PROGRESS_H
#define BHI_BATCH_RUNNER_PROGRESS_H

#include "batch/queue/queue.h"

struct bhi_batch_progress {
    bool terminal, coloured, shown;
    uint64_t began_ns, told_ns;
    uint64_t ended_before; /* jobs that had ended before this process began */
    bool begun, over;
    size_t failures; /* lines printed for failed jobs */
    size_t stuck;    /* lines printed for jobs whose outputs cannot be placed */
};

void bhi_progress_begin(struct bhi_batch_progress *progress);
/* Prints the line again if it is time. */
void bhi_progress_update(struct bhi_batch_progress *progress,
                         const struct bhi_queue_counts *counts);
/* Prints a line about a job that has failed, or (|verbose|) that is tried again. */
void bhi_progress_tell(struct bhi_batch_progress *progress, const struct bhi_job *job,
                       const struct bhi_attempt *attempt, bool verbose);
/* Prints a line about a complete job whose outputs cannot be put in their places. */
void bhi_progress_stuck(struct bhi_batch_progress *progress, const struct bhi_job *job,
                        const char *why);
/* Prints a line that says why nothing goes on. */
void bhi_progress_waits(struct bhi_batch_progress *progress, const char *why);
/* Removes the live line; without a terminal prints the last plain line. */
void bhi_progress_end(struct bhi_batch_progress *progress, const struct bhi_queue_counts *counts);

#endif
