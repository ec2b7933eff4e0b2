/* The crew of a lane: a worker process as the core sees it. What is in its lane, which of that has
 * ended, whose deadline runs, and what its death means for each (obituary in crew_death.c).
 *
 * Submissions are numbered in the order of the lane, and end in that order, but for those that were
 * withdrawn. A new worker is a new crew: a late word of a dead one has nowhere to go (E12).
 */
#ifndef BHI_CORE_CREW_H
#define BHI_CORE_CREW_H

#include "base/idset.h"
#include "core/core.h"
#include "core/stream.h"

#define BHI_MERGED_AT_MOST 64u /* submissions that one queue submission of the device can hold */

struct bhi_crew {
    struct bhi_core *core;
    struct bhi_core_stream *stream; /* NULL: a spare; not referenced, cleared when it goes */
    int32_t pid;                    /* for verdicts */
    struct bhi_list inflight;       /* bhi_submission.link, RELEASED, in the order of the lane */
    struct bhi_idset withdrawn;     /* seqs that ended before the worker came to them */
    struct bhi_past past;           /* what was put into its lane, ever */
    uint64_t published;             /* seq of the newest in the lane */
    uint64_t harvested;             /* seq of the newest whose result was taken */
    bool backlog;                   /* the stream's queue waits for space in the lane */
    uint64_t running_since_ns;      /* the one that runs has been running since */
    uint64_t shortest_ns; /* no deadline is shorter of all that was in flight since it was empty */
    bool aborts;          /* it can end what runs, and go on */
    uint64_t asked_ns;    /* when it was told to the last time */
    uint64_t compiled;    /* that one was seen to be compiled at last */
    uint64_t marker_seen; /* the device's progress at the last look at the deadline */
    _Atomic bool lied;    /* nothing that it has written counts any more; set under the lock */
    uint32_t cancels;     /* in flight, cancelled, and perhaps running */
    bool dead;            /* bhi_crew_died was called */
    enum bhi_kill kill;
    uint64_t kill_event; /* whose deadline or cancel it was */
    char kill_text[256];
};

void bhi_crew_init(struct bhi_crew *crew, struct bhi_core *core);
void bhi_crew_fini(struct bhi_crew *crew);

/* Has it killed. The first reason is kept. */
void bhi_crew_kill(struct bhi_crew *crew, enum bhi_kill reason, uint64_t event, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));
/* It has broken the protocol: killed, and nothing of it counts. */
void bhi_crew_liar(struct bhi_crew *crew, const char *what);

/* Moves what can go from the queue of |stream| into its worker's lane. */
void bhi_crew_fill(struct bhi_core_stream *stream);
/* Takes a submission that is in the lane out of it. True: the worker had not come to it, and never
 * will; it is the caller's to end. False: its result, or its worker's death, tells. */
bool bhi_crew_withdraw(struct bhi_crew *crew, struct bhi_submission *submission);

/* |submission|, in its lane, is cancelled, and may run: until it has ended, looks often at what
 * runs. */
void bhi_crew_hasten(struct bhi_crew *crew, struct bhi_submission *submission);

/* -- results, in order: for each new one either skip or result, then settle once -----------------
 */

/* The next one has ended before: there is no result to be read. */
bool bhi_crew_skip(struct bhi_crew *crew);
/* The next one's result. |outcome|: as the worker wrote it, checked for sense; BH_CANCELLED: it
 * skipped it. False: it lied; no more of it is to be taken. The stream must be referenced: this
 * may have been its last submission. */
bool bhi_crew_result(struct bhi_crew *crew, struct bhi_outcome *outcome);
void bhi_crew_settle(struct bhi_crew *crew);

/* -- deadlines -----------------------------------------------------------------------------------
 */

/* What a worker says of where it is. It may be lying, and can gain no more than one deadline for
 * compiling and one for running by it. */
struct bhi_sight {
    uint64_t started;  /* the newest that may have been started */
    uint32_t marker;   /* the device itself: up to that number, modulo 2^32, it is done */
    uint64_t compiles; /* the newest that had to be compiled first; 0: none */
    bool compiled;     /* that is over: what it does for it now is to run it */
};

/* Where a deadline has passed, or a cancelled one runs, has the worker end it, if it can do that,
 * and killed if it can't, does not within the stream's grace time, or still compiles. Returns when
 * to look again, BH_FOREVER: no need. */
uint64_t bhi_crew_deadline(struct bhi_crew *crew, uint64_t now_ns, const struct bhi_sight *sight);

/* -- death ---------------------------------------------------------------------------------------
 */

struct bhi_death {
    struct bhi_outcome outcome; /* for the culprit; message included */
    struct bhi_sight sight;     /* the last */
    bool closing;               /* the context closes: nothing is put back */
    bool excused;               /* nobody's fault: its zygote died */
    bool final;                 /* another worker would not start either */
    bh_detail why; /* of a start that failed; for an idle worker: how it died; else empty */
};

/* It is dead for certain, and all results that it has published have been taken. Judges what is
 * left: the culprit, those lost with it, and those that go back into the queue (E13). Tells its
 * stream, which lets go of it. True: one of its submissions took the blame. */
bool bhi_crew_died(struct bhi_crew *crew, const struct bhi_death *death);

#endif
