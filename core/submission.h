/* A submission on its way, and the graph of what it depends on.
 *
 *   QUEUED ──▶ RELEASED ──▶ ENDED
 *     │  ▲        │           ▲
 *     │  └────────┘ its worker died before it started (E13)
 *     └───────────────────────┘ poisoned or cancelled before it was released
 *
 * QUEUED: in stream->queue, in order. RELEASED: in worker->inflight, in the order of the lane.
 *
 * Poison flows as soon as it is certain. When an event ends POISONED, all that depends on it is
 * doomed at once: what is queued ends there and then, what is in a lane is withdrawn, and what
 * runs already ends with that verdict whatever its worker says, its own dependents being doomed
 * meanwhile. So the first poison to reach a submission is the one with the earliest origin (E7),
 * in the order in which the supervisor learnt of them: a worker's own clock decides nothing.
 */
#ifndef BHI_CORE_SUBMISSION_H
#define BHI_CORE_SUBMISSION_H

#include "core/content.h"
#include "core/core.h"
#include "core/event.h"
#include "core/past.h"

/* "consumer needs producer". In producer->dependents until the producer ends. */
struct bhi_edge {
    struct bhi_list link;
    struct bh_event *producer; /* referenced */
    struct bhi_submission *consumer;
    bool data;           /* poison flows along it; otherwise it only orders (write after read) */
    bool doom_reported;  /* the consumer knows that the producer is doomed */
    bool holds_consumer; /* other stream: the consumer waits until the producer has ended (E15) */
};

/* A buffer that a submission uses, all its commands together. */
struct bhi_use {
    struct bhi_content *content; /* its buffer is referenced (B2) */
    bool reads;                  /* before this submission has overwritten it whole */
    bool writes;
    bool overwrites; /* a command writes the whole of it without reading it first */
};

enum bhi_submission_state { BHI_QUEUED, BHI_RELEASED, BHI_ENDED };

struct bhi_submission {
    struct bhi_list link;
    struct bhi_list ripple; /* core->ripples */
    enum bhi_submission_state state;
    struct bhi_core_stream *stream; /* referenced while it is queued or released */
    struct bh_event *event;         /* referenced */
    struct bhi_core_worker *worker; /* RELEASED: in whose lane it is */
    uint64_t seq;                   /* RELEASED: its number there */
    uint64_t deadline_ns;           /* relative, BH_FOREVER: none */
    uint64_t released_ns;
    uint64_t code; /* which untrusted code it has run: what is the same has the same number, as
                      long as the context lives; 0: none */
    enum bhi_apart apart;        /* that its caller asked for */
    uint32_t holds;              /* unresolved edges with hold */
    bool runs_kernel;            /* false: compiling is all it does */
    bool abortable;              /* it has kernels, and all of them look at the abort word */
    bool trusted;                /* it has kernels, and one of them does not */
    bool reports_device_time;    /* its worker may say how long the device was busy with it */
    bool cancel_requested;       /* the caller has cancelled it */
    bool cancel_counted;         /* counted in worker->cancels */
    bool skip_requested;         /* the worker has been asked to skip it */
    enum bhi_kill end_requested; /* its worker has been told to end it, because of that */
    uint64_t turn_ns;            /* once it has taken too long: when its turn had come; else 0 */
    bool doomed;                 /* certain to be poisoned; event->verdict says by what */
    bool failure_reported;       /* its stream knows that it is, or is not to know */
    bool end_watched;            /* its end wakes the reactor, although nobody waits */
    struct bhi_edge *edges;
    uint32_t edge_count, edge_capacity;
    struct bhi_use *uses;
    uint32_t use_count, use_capacity;
};

/* -- building: nothing of it is visible to others before it is queued ----------------------------
 */

/* |event|: referenced by the submission from now on; its id must be the newest of the core. */
void bhi_submission_init(struct bhi_submission *submission, struct bhi_core_stream *stream,
                         struct bh_event *event);
/* Notes that a command uses a buffer. *out_first: for the first time; the caller references the
 * buffer then. |whole|: all of it. False: out of memory. */
bool bhi_submission_use(struct bhi_submission *submission, struct bhi_content *content, bool reads,
                        bool writes, bool whole, bool *out_first);
/* Works out what it depends on: the |waits|, and who used its buffers before. False: out of
 * memory. */
bool bhi_submission_depend(struct bhi_submission *submission, bh_event *const *waits,
                           uint32_t wait_count);
/* Never queued: gives back what it holds, through free_submission in the end. */
void bhi_submission_abandon(struct bhi_submission *submission);
/* Queues it. It may end at once: what it depends on is poisoned, or its stream takes nothing. */
void bhi_submission_enqueue(struct bhi_submission *submission);

/* -- once it is queued --------------------------------------------------------------------------
 */

/* What ended a submission, as far as its own worker and commands go. */
struct bhi_outcome {
    bh_status status;
    bh_executed executed;
    bh_blame blame;
    int32_t signal, exit_code, vk_result, sys_errno;
    uint32_t command_index;
    int32_t worker_pid;
    const char *device; /* that worker's; NULL: none */
    uint64_t limit;
    uint64_t started_ns, ended_ns;
    uint64_t device_ns;    /* 0: not known */
    uint64_t origin, tick; /* the event whose fault it is, and that one's origin_tick; 0: its own */
    const char *message;
};
#define BHI_OUTCOME_INIT {.exit_code = -1, .command_index = BH_NO_COMMAND}

/* Ends the submission (event published, buffers and edges dropped, list left) and dooms everything
 * downstream of it, if it is poisoned. */
void bhi_submission_end(struct bhi_submission *submission, const struct bhi_outcome *outcome);
/* Ends one that never started, with |status| (or what it is doomed with).
 * |worker|: in whose lane it was; NULL: in none. */
void bhi_submission_end_unstarted(struct bhi_submission *submission, bh_status status,
                                  const char *message, const struct bhi_core_worker *worker);
/* Its stream is UNAVAILABLE, for |why|. */
void bhi_submission_end_unavailable(struct bhi_submission *submission, const bh_detail *why);
#define BHI_CANCELLED_UNSTARTED "cancelled before it started"
/* It is lost to a failure of its strict stream. */
void bhi_submission_fail_strict(struct bhi_submission *submission, const struct bh_event *failure);
void bhi_submission_cancel(struct bhi_submission *submission);
/* The submission whose worker has to get on before |submission| (NULL is fine) can end: itself
 * where it is in a lane, else one that holds it or those before it in its queue. NULL: none is in a
 * lane, or the chain is long. */
struct bhi_submission *bhi_submission_in_lane(struct bhi_submission *submission);
/* Its end must be noticed without anybody waiting for it. */
void bhi_submission_notify(struct bhi_submission *submission);

#endif
