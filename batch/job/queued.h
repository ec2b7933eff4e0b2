/* A job in the queue, how an attempt at it ended, and the records of both. Queue, graph and journal
 * exchange these structs. */
#ifndef BHI_BATCH_JOB_QUEUED_H
#define BHI_BATCH_JOB_QUEUED_H

#include "batch/job/job.h"

/* A job in the queue, which owns it; valid until the queue is closed. The fields are constant,
 * except for the last group, which only the taker of the job may read. */
struct bhi_job {
    uint64_t number; /* from 1, in the order of adding; never reused */
    const char *id, *text;
    size_t line;
    int32_t priority;
    uint32_t retries; /* how often it may be guilty and still be tried again */

    uint32_t attempts;   /* attempts that were started, without this one */
    uint32_t guilty;     /* those of them that were its own fault */
    uint32_t victim;     /* those of them that were, or may have been, lost with others */
    bool unproven;       /* the last of them may have ended because of another job */
    bool sealed;         /* outputs were complete under their temporary names: do not run it */
    const char *outputs; /* of a sealed one: the marks of its outputs; otherwise NULL */
    bool interrupted;    /* an earlier process may have begun it and left temporary files */
};

struct bhi_queue_options {
    const char *folder;    /* of the state; made 0700 if missing. NULL: no journal */
    const char *jobs_path; /* the file that the jobs came from, for messages and reports */
    bool resume;           /* continue the batch in the folder; an empty or missing folder starts a
                            * new one. False: a folder with a batch is refused */
    bool retry_failed;     /* with |resume|: FAILED and QUARANTINED jobs run again, without their
                            * old guilt, and so do those that failed because of them; the first _add
                            * may give them other lines */
    const char *const *redo; /* with |resume|: ids, patterns of ids or "all": jobs that run again,
                              * with all that depend on them; the first _add may give them other
                              * lines */
    size_t redo_count;
    bool dry_run;        /* record nothing: the folder, if given, must have a batch; from the first
                         * _add on there is no journal. For _take and _ended */
    uint32_t retries;    /* for jobs that give no number */
    uint64_t linger_ns;  /* how long a record that nobody waits for may wait for others, to be
                         * committed with them; 0: the default, 10 ms */
    uint64_t silence_ns; /* how long a folder that a process on another machine has not released
                          * must stay untouched before it is taken over; 0: the default, 20 s */
};

enum bhi_queue_result {
    BHI_QUEUE_OK,
    BHI_QUEUE_BAD_INPUT, /* for example: an id given twice, a cycle, another batch in the folder, a
                          * file as folder */
    BHI_QUEUE_BUSY,      /* another process has the folder */
    BHI_QUEUE_ENVIRON,   /* for example: another version, unreadable, disk full */
};

/* How an attempt ended. */
struct bhi_attempt {
    enum bhi_job_state next;       /* WAITING: it is tried again; otherwise an end */
    bool guilty;                   /* it counts against the job's retries */
    bool unproven;                 /* another job may be the cause: counts as lost */
    bool started;                  /* the job was given to a stream; false: it was refused before */
    uint32_t stream;               /* number of the stream, from 0 */
    uint64_t started_ns, ended_ns; /* CLOCK_REALTIME */
    uint64_t deadline_ns;          /* of its submission; 0: it was never submitted. Not recorded */
    bh_verdict verdict;            /* status BH_OK: READY. If there was no event, only status and
                                    * message are set. BH_PENDING: the job never started and is
                                    * given back, without an attempt */
};
struct bhi_queue_counts {
    uint64_t of[BHI_JOB_STATES];
    uint64_t total;
    uint64_t takeable;    /* at this time */
    uint64_t next_due_ns; /* CLOCK_MONOTONIC, of the next delayed one; 0: none */
};
/* -- for reports ------------------------------------------------------------------------------- */

struct bhi_job_record {
    uint64_t number;
    const char *id;
    const char *text; /* the job's text; NULL: none */
    size_t line;
    enum bhi_job_state state;
    bool sealed; /* RUNNING, with complete outputs under their temporary names */
    int32_t priority;
    uint32_t retries, attempts, guilty;
    const char *outputs; /* of a DONE or sealed job: the marks of its outputs (marks.h); "": it has
                          * none, or an earlier version did not record them */
    /* CLOCK_REALTIME; 0: not yet. |started_ns| is that of the last attempt, 0 if that was
     * refused. */
    uint64_t submitted_ns, started_ns, ended_ns;
    uint64_t took_ns;    /* of all its attempts together, without those that a kill cut off */
    const char *origin;  /* id of the job whose failure made it fail; "": none */
    bh_status status;    /* of its last verdict; BH_PENDING: none */
    const char *message; /* of that verdict; may be "" */
    bh_blame blame;      /* of that verdict */
    const char *device;  /* of that verdict; "" or NULL: not known */
    const char *host;    /* machine of that attempt; "" or NULL: not known */
    const char *shard;   /* in a report over several: its name; otherwise NULL */
};
struct bhi_attempt_record {
    uint64_t job;
    const char *id;   /* of the job */
    uint32_t attempt; /* from 1 */
    bool started;
    uint32_t stream;
    uint64_t started_ns, ended_ns; /* ended_ns 0: a kill of the batch cut it off */
    bool guilty;
    bh_verdict verdict; /* what is recorded: status, executed, signal, exit_code, worker_pid, limit,
                         * kernel_name, kernel_hash, message, blame, device; all else is 0 */
    bool runs;          /* in a report over shards that go on: it has not ended, nor been cut off */
    const char *host;   /* machine it ran on; "" or NULL: not known */
    uint32_t row;       /* in a report over several shards: its row of the timeline, */
    const char *row_name; /* and what that is called; otherwise NULL */
};

#endif
