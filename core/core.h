/* The core: what is submitted, what depends on what, and what becomes of it.
 *
 * A pure state machine. It does no I/O, has no threads, takes no lock and asks nobody for the time:
 * what it wants done, and what it has to know, goes through the ops below. The supervisor drives
 * it under the context's lock (supervisor/submit/core_ops.c); the model checker drives it with fake
 * workers and compares it with an oracle (tests/model).
 *
 *   event.h        an event: state, verdict, who depends on it
 *   observer.h     who is told of an event's end
 *   submission.h   a submission, its edges; how poison flows (E1-E8)
 *   content.h      whether a buffer's content is CLEAN, PENDING or POISONED (B5)
 *   stream.h       a stream's queue, strict mode, cancel, reset
 *   restart.h      the restart budget of a stream
 *   past.h         what a worker was given before, and what its word is worth (T2, T3)
 *   worker.h         a worker's side: what is in its lane, its deadlines, its death (E11-E13)
 *
 * Every call must be made with the caller's lock held. No port may call back into the core, except
 * where it says so.
 */
#ifndef BHI_CORE_CORE_H
#define BHI_CORE_CORE_H

#include "base/list.h"
#include <bulkhead/bulkhead.h>

struct bhi_core;
struct bhi_content;
struct bhi_core_stream;
struct bhi_core_worker;
struct bhi_outcome;
struct bhi_submission;

/* Why a worker is killed. */
enum bhi_kill {
    BHI_KILL_NONE,
    BHI_KILL_DEADLINE,
    BHI_KILL_CANCEL,
    BHI_KILL_COMPILE, /* compiling took too long */
    BHI_KILL_PROTOCOL,
    BHI_KILL_START,   /* too slow to start, or not isolated as it should be */
    BHI_KILL_RETIRED, /* it is not needed any more, or what comes next is not for it */
};

enum bhi_publish {
    BHI_PUBLISHED,
    BHI_LANE_FULL,
    BHI_PUBLISH_NO_MEMORY,
    BHI_PUBLISH_NO_DESCRIPTOR, /* for what the worker would be handed: EMFILE */
};

struct bhi_core_ops {
    uint64_t (*now_ns)(struct bhi_core *core);
    /* Writes |submission| into the worker's lane under number |seq|. Unless it answers
     * BHI_PUBLISHED, nothing has happened. */
    enum bhi_publish (*publish)(struct bhi_core_worker *worker, struct bhi_submission *submission,
                                uint64_t seq);
    /* Has the worker skip number |seq|. True: it had not come to it, and will skip it for certain.
     * False: it may have started, or may skip it all the same: its result tells. */
    bool (*withdraw)(struct bhi_core_worker *worker, uint64_t seq);
    /* The result of |seq|, which withdraw was called for, has been taken. */
    void (*withdrawn)(struct bhi_core_worker *worker, uint64_t seq);
    /* Has the worker end number |seq|, should it run, and go on. Its result says BH_DEADLINE then,
     * if it can; if it has ended otherwise before, that. */
    void (*abort)(struct bhi_core_worker *worker, uint64_t seq);
    /* Ends the worker's process. Its death is told with bhi_core_worker_died, later. */
    void (*kill)(struct bhi_core_worker *worker);
    /* Somebody needs bhi_core_worker_result to be called soon after the next result is there. */
    void (*notify)(struct bhi_core_worker *worker);
    /* bhi_core_worker_deadline must be called at |when_ns|, or soon after. */
    void (*arm)(struct bhi_core *core, uint64_t when_ns);
    /* The submission has been released or put back: who waits for it looks again whom to watch. */
    void (*turned)(struct bh_event *event);
    /* The event has just become READY or POISONED. Exactly once each. bhi_observers_tell is the
     * port's to call. */
    void (*ended)(struct bh_event *event);
    void (*free_event)(struct bh_event *event); /* the last reference is gone */
    /* Fills in the kernel of a command (BH_NO_COMMAND: the only one there is, if so), and may add
     * to the message what it was about; the rest of the verdict is complete. */
    void (*name_kernel)(const struct bhi_submission *submission, uint32_t command_index,
                        bh_verdict *verdict);
    /* It has ended, or was never queued; everything that the core had in it is gone. */
    void (*free_submission)(struct bhi_submission *submission);
    /* Must the submission not run at all? True: |out| says why; its message is good until the next
     * call. Asked when it is queued, and again when its turn comes. */
    bool (*refuse)(const struct bhi_submission *submission, struct bhi_outcome *out);
    /* Is one of its kernels suspected of what another may have done? Then it is tried: it gets a
     * worker that has been given no other code (T2). Asked when its turn comes. */
    bool (*on_trial)(const struct bhi_submission *submission);
    /* A reference that bhi_submission_use took; one that bhi_submission_enqueue took. */
    void (*unref_buffer)(struct bhi_content *content);
    void (*unref_stream)(struct bhi_core_stream *stream);
    void (*ref_stream)(struct bhi_core_stream *stream);
    /* The stream has got or lost its worker, or can have none. */
    void (*stream_changed)(struct bhi_core_stream *stream);
};

struct bhi_core {
    const struct bhi_core_ops *ops;
    uint64_t newest;          /* id of the newest event that was queued */
    uint64_t ticks;           /* how many origins of poison there have been: their order (E7) */
    struct bhi_list pumpable; /* bhi_core_stream.pump_link: bhi_core_pump looks at them */
    struct bhi_list ripples;  /* bhi_submission.ripple: their dependents must be told */
    struct bhi_list sweeps;   /* bhi_core_stream.sweep_link: strict ones that have just failed */
    bool rippling;
};

void bhi_core_init(struct bhi_core *core, const struct bhi_core_ops *ops);

#endif
