/* The worker of a lane: a worker process as the core sees it. It knows what is in the lane, what
 * has ended, whose deadline runs, and what the worker's death means for each submission
 * (worker_death.c).
 *
 * Submissions are numbered in the order of the lane and end in that order, except withdrawn ones.
 * Each process has its own bhi_core_worker, so a late message of a dead one cannot reach the next
 * (E12).
 */
#ifndef BHI_CORE_WORKER_H
#define BHI_CORE_WORKER_H

#include "base/idset.h"
#include "core/compile.h"
#include "core/core.h"
#include "core/stream.h"

#define BHI_MERGED_AT_MOST 64u /* submissions that one vkQueueSubmit can hold */

struct bhi_core_worker {
    struct bhi_core *core;
    struct bhi_life life;            /* its process: why it was killed, how it ended */
    struct bhi_core_stream *stream;  /* NULL: a spare; not referenced; cleared when it ends */
    struct bhi_core_stream *left_by; /* whose |dying| it is; not referenced; cleared likewise */
    int32_t pid;                     /* for verdicts */
    bool bound;                      /* a stream has had it */
    char device[48];                 /* for verdicts: selector of what it runs on; "": nothing */
    struct bhi_list inflight;        /* bhi_submission.link, RELEASED, in the order of the lane */
    struct bhi_idset withdrawn;      /* seqs that ended before the worker started them */
    struct bhi_past past;            /* everything that was ever put into its lane */
    uint64_t published;              /* seq of the newest in the lane */
    uint64_t harvested;              /* seq of the newest result that was taken */
    bool queue_waits;          /* the stream's queue waits until the lane has space, or is empty */
    uint64_t running_since_ns; /* when the current submission began to run */
    uint64_t shortest_ns;      /* the shortest deadline of all in flight since the lane was empty */
    bool can_abort;            /* it can stop what runs, and continue */
    bool confined;             /* what it runs writes only what its submissions declare (C1) */
    bool departed;             /* its submissions have been judged before its burial (C3) */
    bool on_gpu;       /* its driver ends a kernel that makes other processes wait for seconds */
    bool lost_late;    /* the device was lost after a submission had run for seconds */
    uint64_t asked_ns; /* when it was last asked to stop a submission */
    uint64_t compiles; /* seq of the newest submission that was seen compiling */
    uint64_t compiled; /* seq of the newest submission whose compile was seen to have ended */
    struct bhi_compile compile; /* of |compiles|, or what a spare compiles ahead of use */
    uint64_t marker_seen;       /* the device's progress when the deadline was last checked */
    uint32_t cancels;           /* number of submissions in flight that are cancelled and may run */
};

void bhi_core_worker_init(struct bhi_core_worker *worker, struct bhi_core *core);
void bhi_core_worker_fini(struct bhi_core_worker *worker);

/* Kills the worker. Only the first reason is kept. */
void bhi_core_worker_kill(struct bhi_core_worker *worker, enum bhi_kill reason, uint64_t event,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The worker broke the protocol: kills it, and ignores all that it has written. */
void bhi_core_worker_violation(struct bhi_core_worker *worker, const char *what);

/* Returns how fresh the worker of |submission| must be: for its stream, its caller, or a trial. */
enum bhi_apart bhi_core_submission_apart(const struct bhi_submission *submission);
/* Returns true if a worker that no stream has yet may run what |stream| will give it first; if that
 * is not known: whatever it can be, but for a caller's wish or a trial. */
bool bhi_core_worker_suits(const struct bhi_core_worker *worker,
                           const struct bhi_core_stream *stream);
/* Moves submissions from the queue of |stream| into its worker's lane. */
void bhi_core_worker_fill(struct bhi_core_stream *stream);
/* Withdraws a submission from the lane. True: the worker had not started it and never will; the
 * caller must end it. False: its result, or its worker's death, will end it. */
bool bhi_core_worker_withdraw(struct bhi_core_worker *worker, struct bhi_submission *submission);

/* |submission|, in the lane, was cancelled and may run: checks often until it has ended. */
void bhi_core_worker_hasten(struct bhi_core_worker *worker, struct bhi_submission *submission);

/* -- results, in order: for each new one either skip or result, then settle once -----------------
 */

/* Returns true if the next submission has ended already, so there is no result to read. */
bool bhi_core_worker_skip(struct bhi_core_worker *worker);
/* Takes the next result. |outcome| is as the worker wrote it, checked for validity; BH_CANCELLED:
 * the worker skipped it. Returns false if the worker lied; then take no more of its results. The
 * caller holds a reference to the stream, whose last submission this may be. */
bool bhi_core_worker_result(struct bhi_core_worker *worker, struct bhi_outcome *outcome);
void bhi_core_worker_settle(struct bhi_core_worker *worker);

/* -- deadlines -----------------------------------------------------------------------------------
 */

/* What a worker reports about its progress. It may lie. A lie gains at most the time for compiling,
 * which is four deadlines by the clock, and one deadline for running. */
struct bhi_progress_snapshot {
    uint64_t started;   /* the newest submission that may have started */
    uint32_t marker;    /* written by the device: all up to this number, modulo 2^32, are done */
    uint64_t compiles;  /* the newest submission that needed a compile; 0: none */
    bool compile_ended; /* compiling has ended; it runs now */
};

/* If a deadline has passed, or a cancelled submission runs, makes the worker stop it. Kills the
 * worker if it cannot stop submissions, does not do so within the stream's grace time, or is still
 * compiling (compile.h says when that is too long). Returns when to check again; BH_FOREVER: no
 * need. */
uint64_t bhi_core_worker_deadline(struct bhi_core_worker *worker, uint64_t now_ns,
                                  const struct bhi_progress_snapshot *snapshot);

/* -- death ---------------------------------------------------------------------------------------
 */

/* Who has ended a worker. It decides who can be blamed (T2). */
enum bhi_cause {
    BHI_CAUSE_OWN,      /* itself, or the supervisor because of what it did */
    BHI_CAUSE_DOUBTFUL, /* itself or others: blame is suspected at most */
    BHI_CAUSE_OUTSIDE,  /* somebody else: nobody is blamed */
};

struct bhi_death {
    struct bhi_outcome outcome;            /* of the culprit, with its message */
    struct bhi_progress_snapshot snapshot; /* the last one */
    bool closing;                          /* the context closes: nothing is put back */
    bool excused;                          /* the stream goes to another device: it costs nothing */
    bool others_would_fail;                /* another worker could not start either */
    enum bhi_cause cause;
    bh_detail why; /* why a start failed, or how an idle worker died; else empty */
};

/* Returns true if the stream of a dying worker can go on without it before its death is confirmed:
 * nothing that it was told to do is under way, and its death costs the stream nothing. Such a
 * worker is like one that is idle (decision 4). A stream that is to be kept apart from what its
 * workers ran before waits, and so does one whose last worker but one is not confirmed dead. */
bool bhi_core_worker_may_leave(const struct bhi_core_worker *worker);
/* Kills the worker, which is dying, and takes it from its stream, which wants another one from now
 * on. Until bhi_core_worker_died, the stream runs nothing that is to be kept apart. */
void bhi_core_worker_leave(struct bhi_core_worker *worker, const bh_detail *why);

/* Returns true if what the worker had can be judged now, and its stream go on, although its device is
 * not released: its process has ended, so it reports nothing more, and all that its device may still
 * write is what its submissions declared (C3). */
bool bhi_core_worker_may_depart(const struct bhi_core_worker *worker);
/* Does so, as bhi_core_worker_died does: the stream wants another worker from now on. What the device
 * may still write is told to ops->writes_on. Until bhi_core_worker_died the stream runs nothing that is
 * to be kept apart. Returns true if one of its submissions was to blame. */
bool bhi_core_worker_depart(struct bhi_core_worker *worker, const struct bhi_death *death);

/* Did a process that ended like that crash? One that was killed from outside has not. */
bool bhi_outcome_is_crash(const struct bhi_outcome *outcome);

/* The worker is certainly dead. What it was killed for may have begun since: makes kill_text fit
 * |last|, the last snapshot. */
void bhi_core_worker_mend_text(struct bhi_core_worker *worker,
                               const struct bhi_progress_snapshot *last);
/* The worker is certainly dead, and all its published results have been taken. Ends or requeues
 * what is left: the culprit, those lost with it, and those that go back into the queue (E13).
 * Detaches the worker from its stream. Returns true if one of its submissions was to blame. */
bool bhi_core_worker_died(struct bhi_core_worker *worker, const struct bhi_death *death);

#endif
