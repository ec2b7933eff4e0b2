/* The worker of a lane: a worker process as the core sees it. What is in its lane, which of that
 * has ended, whose deadline runs, and what its death means for each (obituary in worker_death.c).
 *
 * Submissions are numbered in the order of the lane, and end in that order, but for those that were
 * withdrawn. A new worker is a new worker: a late word of a dead one has nowhere to go (E12).
 */
#ifndef BHI_CORE_WORKER_H
#define BHI_CORE_WORKER_H

#include "base/idset.h"
#include "core/core.h"
#include "core/stream.h"

#define BHI_MERGED_AT_MOST 64u /* submissions that one queue submission of the device can hold */

struct bhi_core_worker {
    struct bhi_core *core;
    struct bhi_core_stream *stream; /* NULL: a spare; not referenced, cleared when it goes */
    int32_t pid;                    /* for verdicts */
    char device[48];                /* for verdicts: selector of what it runs on; "": nothing */
    struct bhi_list inflight;       /* bhi_submission.link, RELEASED, in the order of the lane */
    struct bhi_idset withdrawn;     /* seqs that ended before the worker came to them */
    struct bhi_past past;           /* what was put into its lane, ever */
    uint64_t published;             /* seq of the newest in the lane */
    uint64_t harvested;             /* seq of the newest whose result was taken */
    bool queue_waits;               /* the stream's queue waits for space in the lane */
    uint64_t running_since_ns;      /* the one that runs has been running since */
    uint64_t shortest_ns;  /* no deadline is shorter of all that was in flight since it was empty */
    bool can_abort;        /* it can end what runs, and go on */
    bool on_gpu;           /* whose driver ends what keeps other processes waiting for seconds */
    bool lost_late;        /* it lost its device after so long */
    uint64_t asked_ns;     /* when it was told to the last time */
    uint64_t compiled;     /* that one was seen to be compiled at last */
    uint64_t marker_seen;  /* the device's progress at the last look at the deadline */
    _Atomic bool violated; /* nothing that it has written counts any more; set under the lock */
    uint32_t cancels;      /* in flight, cancelled, and perhaps running */
    bool dead;             /* bhi_core_worker_died was called */
    enum bhi_kill kill;
    uint64_t kill_event; /* whose deadline or cancel it was */
    char kill_text[256];
};

void bhi_core_worker_init(struct bhi_core_worker *worker, struct bhi_core *core);
void bhi_core_worker_fini(struct bhi_core_worker *worker);

/* Has it killed. The first reason is kept. */
void bhi_core_worker_kill(struct bhi_core_worker *worker, enum bhi_kill reason, uint64_t event,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
/* It has broken the protocol: killed, and nothing of it counts. */
void bhi_core_worker_violation(struct bhi_core_worker *worker, const char *what);

/* Moves what can go from the queue of |stream| into its worker's lane. */
void bhi_core_worker_fill(struct bhi_core_stream *stream);
/* Takes a submission that is in the lane out of it. True: the worker had not come to it, and never
 * will; it is the caller's to end. False: its result, or its worker's death, tells. */
bool bhi_core_worker_withdraw(struct bhi_core_worker *worker, struct bhi_submission *submission);

/* |submission|, in its lane, is cancelled, and may run: until it has ended, looks often at what
 * runs. */
void bhi_core_worker_hasten(struct bhi_core_worker *worker, struct bhi_submission *submission);

/* -- results, in order: for each new one either skip or result, then settle once -----------------
 */

/* The next one has ended before: there is no result to be read. */
bool bhi_core_worker_skip(struct bhi_core_worker *worker);
/* The next one's result. |outcome|: as the worker wrote it, checked for sense; BH_CANCELLED: it
 * skipped it. False: it lied; no more of it is to be taken. The stream must be referenced: this
 * may have been its last submission. */
bool bhi_core_worker_result(struct bhi_core_worker *worker, struct bhi_outcome *outcome);
void bhi_core_worker_settle(struct bhi_core_worker *worker);

/* -- deadlines -----------------------------------------------------------------------------------
 */

/* What a worker says of where it is. It may be lying, and can gain no more than one deadline for
 * compiling and one for running by it. */
struct bhi_progress_snapshot {
    uint64_t started;   /* the newest that may have been started */
    uint32_t marker;    /* the device itself: up to that number, modulo 2^32, it is done */
    uint64_t compiles;  /* the newest that had to be compiled first; 0: none */
    bool compile_ended; /* compiling is over, it runs now */
};

/* Where a deadline has passed, or a cancelled one runs, has the worker end it, if it can do that,
 * and killed if it can't, does not within the stream's grace time, or still compiles. Returns when
 * to look again, BH_FOREVER: no need. */
uint64_t bhi_core_worker_deadline(struct bhi_core_worker *worker, uint64_t now_ns,
                                  const struct bhi_progress_snapshot *snapshot);

/* -- death ---------------------------------------------------------------------------------------
 */

struct bhi_death {
    struct bhi_outcome outcome;            /* for the culprit; message included */
    struct bhi_progress_snapshot snapshot; /* the last */
    bool closing;                          /* the context closes: nothing is put back */
    bool excused;                          /* nobody's fault: its zygote died */
    bool others_would_fail;                /* another worker would not start either */
    bh_detail why; /* of a start that failed; for an idle worker: how it died; else empty */
};

/* It is dead for certain, and all results that it has published have been taken. Judges what is
 * left: the culprit, those lost with it, and those that go back into the queue (E13). Tells its
 * stream, which lets go of it. True: one of its submissions took the blame. */
bool bhi_core_worker_died(struct bhi_core_worker *worker, const struct bhi_death *death);

#endif
