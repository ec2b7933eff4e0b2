/* The reports of a batch: a table for a person, an object for a program, a page for a browser. All
 * read the queue's journal after every job has ended (bhi_queue_flush), or the records of several
 * shards at any time. */
#ifndef BHI_BATCH_REPORT_REPORT_H
#define BHI_BATCH_REPORT_REPORT_H

#include <stdio.h>

#include "batch/queue/queue.h"

/* A line that is no job of the queue, because it is bad or needs a bad one. Counts as failed. */
struct bhi_report_bad {
    size_t line;
    const char *id;     /* "": no id could be read */
    const char *origin; /* id of the bad line that it needs; "": it is bad itself */
    const char *message;
};

/* A job whose complete outputs cannot be put in their places. It is still RUNNING. */
struct bhi_report_stuck {
    uint64_t line;
    const char *id, *message;
};

/* A part of a batch that several processes run. */
struct bhi_report_shard {
    const char *name, *state, *host; /* |host|: of its last process; "": none yet */
    uint64_t of[BHI_JOB_STATES], total;
    uint64_t last_ns; /* of what it has written, by the clock of its host; 0: nothing yet */
    int64_t skew_ns;  /* by how much that clock is ahead of the file system's; 0: not noticeably */
};

/* Where the records of several shards come from, instead of one queue. */
struct bhi_report_source {
    void *self;
    bool (*each_job)(void *self, bool (*visit)(void *user, const struct bhi_job_record *record),
                     void *user);
    bool (*each_attempt)(void *self,
                         bool (*visit)(void *user, const struct bhi_attempt_record *record),
                         void *user);
    void (*counts)(void *self, struct bhi_queue_counts *out_counts);
    bool (*names_device)(void *self, bool *out_names); /* does a job's line name one? */
    const char *batch_id;
    const struct bhi_report_shard *shards;
    size_t shard_count;
    const char *const *notes; /* sentences: what is odd about the records */
    size_t note_count;
};

/* What the journal does not know of this run. */
struct bhi_report_run {
    const char *jobs_path, *state_folder, *device;
    uint32_t streams;
    uint64_t elapsed_ns; /* of this process */
    uint64_t ran;        /* attempts of this process */
    int exit_status;
    bool halted;                      /* too many jobs have failed (--halt) */
    const struct bhi_report_bad *bad; /* in the order of the file */
    size_t bad_count;
    const struct bhi_report_stuck *stuck;
    size_t stuck_count;
    const struct bhi_report_source *source; /* then there is no queue; NULL: one queue */
};

/* Prints counts by state, time and rate, then the jobs that are not done: id, line, state, code,
 * attempts, origin, message. It lists 50 of them, at most five with the same message, and says how
 * many more there are. Wrapped to the terminal's width. */
bool bhi_report_table(FILE *stream, struct bhi_queue *queue, const struct bhi_report_run *run);
/* Prints one object to standard output; docs/reports.md lists its keys. */
bool bhi_report_json(struct bhi_queue *queue, const struct bhi_report_run *run);
/* Writes a self-contained page without scripts or styles from elsewhere. A timeline (a row for each
 * stream, a bar for each attempt, coloured by verdict, thinned if there are too many), attempts by
 * verdict, the failures, all jobs (the first 5,000). Written completely or not at all
 * (outfile.h). */
bool bhi_report_html(const char *path, struct bhi_queue *queue, const struct bhi_report_run *run,
                     struct bhi_complaint *complaint);

#endif
