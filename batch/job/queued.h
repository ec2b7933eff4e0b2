/* A job in the queue, how an attempt at it ended, and what is recorded of both: what the queue, its
 * graph and its journal tell each other. */
#ifndef BHI_BATCH_JOB_QUEUED_H
#define BHI_BATCH_JOB_QUEUED_H

#include "batch/job/job.h"

/* A job in the queue. Owned by the queue, valid until it is closed; the fields are constant but for
 * the last group, which only who has taken the job may read. */
struct bhi_job {
    uint64_t number; /* from 1, in the order in which they were added; never used again */
    const char *id, *text;
    size_t line;
    int32_t priority;
    uint32_t retries; /* how often it may be guilty and still be tried again */

    uint32_t attempts;   /* that were started, this one not among them */
    uint32_t guilty;     /* of them that were its own fault */
    uint32_t victim;     /* of them that were lost with something else, or may have been */
    bool unproven;       /* what the last one ended with may have been another's doing */
    bool sealed;         /* outputs were complete under their temporary names: finish, do not run */
    const char *outputs; /* of a sealed one, what they are recognised by; of others NULL */
    bool interrupted;    /* an earlier process may have begun it: its temporaries may lie about */
};

struct bhi_queue_options {
    const char *folder; /* of the state; made 0700 where it is missing. NULL: no journal at all */
    const char *jobs_path; /* what it was submitted from, for messages and reports */
    bool resume;           /* go on with what is in the folder; an empty or missing one just starts.
                              False: a folder that has a batch is refused */
    bool retry_failed;     /* with resume: FAILED and QUARANTINED ones are taken up again, with
                              a clean record of guilt, and so are those that failed through them;
                              the first _add may give them other lines */
    const char *const *redo; /* with resume: ids of jobs that are to run anew, with all that depend
                                on them; the first _add may give them other lines */
    size_t redo_count;
    bool dry_run;       /* nothing is recorded: the folder, where it is given, has a batch, and
                           from the first _add on there is no journal; for _take and _ended */
    uint32_t retries;   /* for jobs that give none */
    uint64_t linger_ns; /* how long a record may wait for others to be committed with it where
                           nobody waits for it; 0: the default, 10 ms */
};

enum bhi_queue_result {
    BHI_QUEUE_OK,
    BHI_QUEUE_BAD_INPUT, /* ids given twice, cycles, another batch in the folder, a file for one, … */
    BHI_QUEUE_ENVIRON,   /* in use by another process, another version, unreadable, disk full */
};

/* How an attempt ended. */
struct bhi_attempt {
    enum bhi_job_state next;       /* WAITING: it is tried again; or an end */
    bool guilty;                   /* counts against the job's retries */
    bool unproven;                 /* may have been another's doing: counts as lost with it */
    bool started;                  /* it was given to a stream; false: refused before */
    uint32_t stream;               /* number of the stream, from 0 */
    uint64_t started_ns, ended_ns; /* CLOCK_REALTIME */
    bh_verdict verdict;            /* status BH_OK: READY. Of what never became an event, status and
                                      message are set and the rest is 0. BH_PENDING, where it
                                      never started: there was no attempt, it is given back */
};
struct bhi_queue_counts {
    uint64_t of[BHI_JOB_STATES];
    uint64_t total;
    uint64_t takeable; /* now */
    uint64_t
        next_due_ns; /* CLOCK_MONOTONIC when a delayed one becomes takeable; 0: none is delayed */
};
/* -- for reports ------------------------------------------------------------------------------- */

struct bhi_job_record {
    uint64_t number;
    const char *id;
    const char *text; /* the job's; NULL: there is none */
    size_t line;
    enum bhi_job_state state;
    bool sealed; /* RUNNING, and its outputs are complete under their temporary names */
    int32_t priority;
    uint32_t retries, attempts, guilty;
    const char *outputs; /* of a DONE or sealed one: what they are recognised by (marks.h); "": it
                            has none, or an earlier version did not keep it */
    /* CLOCK_REALTIME; 0: not yet. |started_ns| of the last attempt, 0 where that was refused. */
    uint64_t submitted_ns, started_ns, ended_ns;
    uint64_t took_ns;    /* all its attempts together, but those that a kill cut off */
    const char *origin;  /* id of the job through which it failed; "": itself, or it has not */
    bh_status status;    /* of its last verdict; BH_PENDING: none */
    const char *message; /* of it; may be "" */
    bh_blame blame;      /* of it */
};
struct bhi_attempt_record {
    uint64_t job;
    const char *id;   /* of the job */
    uint32_t attempt; /* from 1 */
    bool started;
    uint32_t stream;
    uint64_t started_ns, ended_ns; /* ended_ns 0: cut off by a kill of the batch */
    bool guilty;
    bh_verdict verdict; /* as recorded: status, executed, signal, exit_code, worker_pid, limit,
                           kernel_name, kernel_hash, message, blame; the rest is 0 */
};

#endif
