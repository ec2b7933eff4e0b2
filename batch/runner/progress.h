/* The progress of a batch on standard error: on a terminal one line that is updated, elsewhere a
 * line from time to time. It fits: fields at its end are left out. Main thread. */
#ifndef BHI_BATCH_RUNNER_PROGRESS_H
#define BHI_BATCH_RUNNER_PROGRESS_H

#include "batch/queue/queue.h"

enum {
    BHI_PROGRESS_SAMPLES = 61, /* one a second: the last minute */
    BHI_PROGRESS_LATE = 64,
};

struct bhi_progress_sample {
    uint64_t time_ns, ended;
};

struct bhi_batch_progress {
    bool terminal, coloured, shown;
    uint64_t began_ns, told_ns;
    uint64_t ended_before; /* jobs that had ended before this process began */
    bool begun, over;
    struct bhi_progress_sample samples[BHI_PROGRESS_SAMPLES];
    size_t sample_count;
    uint64_t moved_ns, moved_to;      /* when a job ended last, and how many have since */
    uint64_t late[BHI_PROGRESS_LATE]; /* jobs that have passed their deadlines since then */
    size_t late_count;
    uint64_t late_ns; /* that deadline, */
    bool late_same;   /* if it is that of all */
    size_t failures;  /* lines printed for failed jobs */
    size_t stuck;     /* lines printed for jobs whose outputs cannot be placed */
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
