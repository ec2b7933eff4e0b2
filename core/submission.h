/* A submission that has not ended, and the graph of its dependencies.
 *
 *   QUEUED ──▶ RELEASED ──▶ ENDED
 *     │  ▲        │           ▲
 *     │  └────────┘ its worker died before it started (E13)
 *     └───────────────────────┘ poisoned or cancelled before it was released
 *
 * QUEUED: in stream->queue, in order. RELEASED: in worker->inflight, in the order of the lane.
 *
 * Poison flows as soon as it is certain. When an event ends POISONED, all its dependents are doomed
 * at once. A queued one ends immediately. One in a lane is withdrawn. One that already runs will
 * end with that verdict, whatever its worker reports; its own dependents are doomed immediately. So
 * the first poison that reaches a submission has the earliest origin (E7), in the order in which
 * the supervisor learnt of the failures. A worker's clock decides nothing.
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
    bool doom_reported;  /* the producer's doom was passed on to the consumer */
    bool holds_consumer; /* of another stream: the consumer waits for its end (E15) */
};

/* A buffer that a submission uses, all its commands together. */
struct bhi_use {
    struct bhi_content *content; /* its buffer is referenced (B2) */
    bool reads;                  /* it reads content that it has not overwritten itself */
    bool writes;
    bool overwrites; /* a command writes the whole of it without reading it first */
};

enum bhi_submission_state { BHI_QUEUED, BHI_RELEASED, BHI_ENDED };

/* When a submission whose worker dies while it runs is put back, to run again (decision 8). */
enum bhi_repeat {
    BHI_REPEAT_NEVER, /* what it has written it may read */
    BHI_REPEAT_VICTIM, /* when nobody is to blame: all that it changes is an answer, or what it loads */
    BHI_REPEAT_ALWAYS, /* a copy of the library's: it is never to blame */
};

struct bhi_submission {
    struct bhi_list link;
    struct bhi_list ripple; /* core->ripples */
    enum bhi_submission_state state;
    struct bhi_core_stream *stream; /* referenced while it is queued or released */
    struct bh_event *event;         /* referenced */
    struct bhi_core_worker *worker; /* RELEASED: in whose lane it is */
    uint64_t seq;                   /* RELEASED: its number there */
    uint64_t deadline_ns;           /* relative, BH_FOREVER: none */
    uint64_t due_ns; /* not 0: the deadline passes then, so waiting for a worker counts */
    uint64_t released_ns;
    uint64_t code; /* number of its kernels' code, the same for equal code of a context; 0: none */
    enum bhi_apart apart; /* requested by the caller */
    uint32_t holds;       /* edges that hold it and whose producer has not ended */
    bool runs_kernel;     /* false: it only compiles */
    enum bhi_repeat repeat;
    uint32_t deaths; /* what the deaths of workers that ran it have cost (bhi_submission_again) */
    bool abortable;  /* it has kernels, and all of them read the abort word */
    bool trusted;    /* one of its kernels does not */
    bool reports_device_time;    /* its result may say how long the device was busy */
    bool cancel_requested;       /* the caller has cancelled it */
    bool cancel_counted;         /* counted in worker->cancels */
    bool skip_requested;         /* the worker has been asked to skip it */
    enum bhi_kill end_requested; /* why its worker was asked to stop it; NONE: it was not */
    uint64_t turn_ns;            /* set once it has taken too long: when its turn came; else 0 */
    bool doomed;                 /* certain to be poisoned; event->verdict says by what */
    bh_status injected;    /* chaos may end it so: then blame is suspected at most; OK: none */
    bool failure_reported; /* its stream was notified of its failure, or must not be */
    bool end_watched;      /* its end wakes the reactor, even if no thread waits */
    struct bhi_edge *edges;
    uint32_t edge_count, edge_capacity;
    struct bhi_use *uses;
    uint32_t use_count, use_capacity;
};

/* -- building: nothing of it is visible to others before it is queued ----------------------------
 */

/* Takes over a reference to |event|, whose id must be the newest of the core. */
void bhi_submission_init(struct bhi_submission *submission, struct bhi_core_stream *stream,
                         struct bh_event *event);
/* Notes that a command uses a buffer; |whole|: all of it. *out_first: it is the first use, and the
 * caller must reference the buffer. Returns false if out of memory. */
bool bhi_submission_use(struct bhi_submission *submission, struct bhi_content *content, bool reads,
                        bool writes, bool whole, bool *out_first);
/* Adds the dependencies: on |waits|, and on the earlier users of its buffers. Returns false if out
 * of memory. */
bool bhi_submission_depend(struct bhi_submission *submission, bh_event *const *waits,
                           uint32_t wait_count);
/* Frees a submission that was never queued, with free_submission, and drops all that it holds. */
void bhi_submission_abandon(struct bhi_submission *submission);
/* Queues it. It ends at once if a dependency is poisoned, if its stream has failed or is
 * UNAVAILABLE, or if it is refused. */
void bhi_submission_enqueue(struct bhi_submission *submission);

/* -- once it is queued --------------------------------------------------------------------------
 */

/* How a submission has ended, other than by poison that reached it. */
struct bhi_outcome {
    bh_status status;
    bh_reason reason;
    bh_subject subject;
    const char *subject_name; /* NULL: none */
    uint64_t value;
    bh_executed executed;
    bh_blame blame;
    int32_t signal, exit_code, vk_result, sys_errno;
    uint32_t command_index;
    int32_t worker_pid;
    const char *device; /* that worker's; NULL: none */
    bool elsewhere;     /* the cause may have nothing to do with it: blame is suspected at most */
    uint64_t limit;
    uint64_t started_ns, ended_ns;
    uint64_t device_ns;    /* 0: not known */
    uint64_t origin, tick; /* the event that is to blame, and its origin_tick; 0: this one */
    const char *message;
};
#define BHI_OUTCOME_INIT {.exit_code = -1, .command_index = BH_NO_COMMAND}
/* How a submission that never started ends because of |why|, which has to outlive it. */
struct bhi_outcome bhi_outcome_unstarted(const bh_detail *why, uint64_t ended_ns);

/* Ends the submission: publishes its event, drops its buffers and edges, and takes it out of its
 * list. If it is poisoned, dooms everything that depends on it. */
void bhi_submission_end(struct bhi_submission *submission, const struct bhi_outcome *outcome);
/* Ends a submission that never started, with |status|, or with the poison that has doomed it.
 * |worker|: the one in whose lane it was, or NULL. */
void bhi_submission_end_unstarted(struct bhi_submission *submission, bh_status status,
                                  const char *message, const struct bhi_core_worker *worker);
/* Ends a submission that gets no worker because of |why|. */
void bhi_submission_end_unavailable(struct bhi_submission *submission, const bh_detail *why);
/* Returns true if |submission|, whose worker died while it ran, or lost its device, is put back, to run
 * again, where those from |least| on are. BHI_REPEAT_NEVER: nothing of it has run; then it also goes
 * back if nobody wants it any more, and ends there. */
bool bhi_submission_again(const struct bhi_submission *submission, enum bhi_repeat least);
#define BHI_CANCELLED_UNSTARTED "cancelled before it started"
/* Dooms a submission because its strict stream has failed with |failure|. */
void bhi_submission_fail_strict(struct bhi_submission *submission, const struct bh_event *failure);
void bhi_submission_cancel(struct bhi_submission *submission);
/* The same, but one that has begun ends by itself: nobody is killed for it. */
void bhi_submission_let_go(struct bhi_submission *submission);
/* Returns the submission in a lane that must progress before |submission| (may be NULL) can end:
 * itself if it is in a lane, else one for which it waits, or for which the head of its queue waits.
 * NULL: none is in a lane, or the chain is too long. */
struct bhi_submission *bhi_submission_in_lane(struct bhi_submission *submission);
/* Makes the end of the submission wake the reactor, even if no thread waits for it. */
void bhi_submission_notify(struct bhi_submission *submission);

#endif
