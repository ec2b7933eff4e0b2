/* What became of a batch: a table for a person, an object for a program, a page for a browser.
 * All of them read the queue's journal after everything has ended (bhi_queue_flush). */
#ifndef BHI_BATCH_REPORT_REPORT_H
#define BHI_BATCH_REPORT_REPORT_H

#include <stdio.h>

#include "batch/queue/queue.h"

/* A line that is no job of the queue: it was bad, or needs one that is. It counts as failed. */
struct bhi_report_bad {
    size_t line;
    const char *id;     /* ""; it has none that could be read */
    const char *origin; /* id of the bad line through which it failed; "": itself */
    const char *message;
};

/* A job whose outputs are complete and cannot be put in their places: it is still running. */
struct bhi_report_stuck {
    uint64_t line;
    const char *id, *message;
};

/* What the journal does not know. */
struct bhi_report_run {
    const char *jobs_path, *state_folder, *device;
    uint32_t streams;
    uint64_t elapsed_ns; /* of this process */
    uint64_t ran;        /* attempts of this process */
    int exit_status;
    bool halted;                      /* too many jobs have failed (--halt) */
    const struct bhi_report_bad *bad; /* in the order of the file, more or less */
    size_t bad_count;
    const struct bhi_report_stuck *stuck;
    size_t stuck_count;
};

/* Counts by state, time and rate, then each job that is not done: id, line, state, code, attempts,
 * origin, message; the first 50, five of those that say the same, and how many there are besides.
 * Wrapped as the terminal is wide.
 */
bool bhi_report_table(FILE *stream, struct bhi_queue *queue, const struct bhi_report_run *run);
/* One object on standard output; docs/reports.md lists its keys. */
bool bhi_report_json(struct bhi_queue *queue, const struct bhi_report_run *run);
/* A self-contained page: no script or style from elsewhere. A timeline (a row a stream, a bar an
 * attempt, coloured by verdict, thinned where there are more than fit), attempts by verdict, the
 * table of what failed, all jobs (the first 5,000). Written whole or not at all (outfile.h). */
bool bhi_report_html(const char *path, struct bhi_queue *queue, const struct bhi_report_run *run,
                     struct bhi_complaint *complaint);

#endif
