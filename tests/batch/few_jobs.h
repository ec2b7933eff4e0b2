/* A queue without a journal, and jobs for it that are written in few words. Every function fails
 * the test if something is not as it says. */
#ifndef BATCH_FEW_JOBS_H
#define BATCH_FEW_JOBS_H

#include "batch/queue/queue.h"

/* Opens a queue whose complaints name |jobs_path|, or jobs.jsonl. */
struct bhi_queue *open_queue_of(const char *jobs_path);
struct bhi_queue *open_queue(void);

struct jobs {
    struct bhi_job_spec specs[64];
    size_t count;
};

/* Appends a job to |jobs|. |needs|, |reads| and |writes| are words with blanks between them: ids
 * and paths. What it both reads and writes, it replaces (inout). */
void job(struct jobs *jobs, const char *id, const char *needs, const char *reads,
         const char *writes, int priority);
void free_jobs(struct jobs *jobs);
/* Adds all of |jobs|, or expects that they are refused with a complaint that has |words|. Both
 * empty |jobs|. */
void add(struct bhi_queue *queue, struct jobs *jobs);
void expect_refused(struct bhi_queue *queue, struct jobs *jobs, const char *words);

/* Takes the next job, which must be |id|; NULL: there must be none. */
struct bhi_job *expect_next(struct bhi_queue *queue, const char *id);
/* Starts a job that was taken, and ends it. */
void end(struct bhi_queue *queue, struct bhi_job *job, enum bhi_job_state next, bh_status status,
         uint64_t delay_ns);
/* Takes the job |id| and ends it well. */
void run(struct bhi_queue *queue, const char *id);
void expect_counts(struct bhi_queue *queue, const uint64_t expected[BHI_JOB_STATES]);

#endif
