/* The core: the state machine of submissions, their dependencies and their results.
 *
 * It does no I/O, has no threads, takes no lock and reads no clock. It acts and gets information
 * only through the ops below. The supervisor drives it under the context's lock
 * (supervisor/submit/core_ops.c). The model checker drives it with fake workers and compares it
 * with an oracle (tests/model).
 *
 *   event.h        an event: state, verdict, dependents; who is notified of its end
 *   submission.h   a submission and its edges; how poison flows (E1-E8)
 *   content.h      whether a buffer's content is CLEAN, PENDING or POISONED (B5)
 *   stream.h       a stream's queue, strict mode, cancel, reset
 *   restart.h      the restart budget of a stream
 *   stats.h        what a stream counts, for bh_context_stats
 *   compile.h      how long a worker may compile
 *   past.h         which code a worker was given before, and what its results prove (T2, T3)
 *   worker.h       a worker: its lane, its deadlines, what its death means (E11-E13)
 *   life.h         its life: the states from its start to its burial
 *
 * Call every function with the caller's lock held. An op must not call back into the core, unless
 * its comment allows it.
 */
#ifndef BHI_CORE_CORE_H
#define BHI_CORE_CORE_H

#include "base/list.h"
#include "core/life.h"
#include "core/past.h"
#include <bulkhead/bulkhead.h>

struct bhi_core;
struct bhi_content;
struct bhi_core_stream;
struct bhi_core_worker;
struct bhi_outcome;
struct bhi_submission;

/* Returns the time |ns| after |since_ns|; BH_FOREVER if that is too late for a number. */
static inline uint64_t bhi_after_ns(uint64_t since_ns, uint64_t ns) {
    return ns == BH_FOREVER || since_ns + ns < since_ns ? BH_FOREVER : since_ns + ns;
}

enum bhi_publish { BHI_PUBLISHED, BHI_LANE_FULL };

struct bhi_core_ops {
    uint64_t (*now_ns)(struct bhi_core *core);
    /* Writes |submission| into the worker's lane under number |seq|. |apart|: how fresh
     * the worker must be. If it does not return BHI_PUBLISHED, nothing has happened. -errno: the
     * worker cannot be given what it needs. */
    int (*publish)(struct bhi_core_worker *worker, struct bhi_submission *submission,
                   enum bhi_apart apart, uint64_t seq);
    /* Makes the worker skip number |seq|. True: the worker had not started it and will certainly
     * skip it. False: it may have started it; the result will tell. */
    bool (*withdraw)(struct bhi_core_worker *worker, uint64_t seq);
    /* The core has taken the result of |seq|, for which withdraw was called. */
    void (*withdrawn)(struct bhi_core_worker *worker, uint64_t seq);
    /* Makes the worker stop number |seq| if it runs, and then continue. The result is BH_DEADLINE
     * if the worker stopped it, or the result with which it had ended before. */
    void (*abort)(struct bhi_core_worker *worker, uint64_t seq);
    /* Returns true if somebody has stopped the worker's process (SIGSTOP), which it cannot do
     * itself; false: it runs, or that is not known. */
    bool (*stopped)(const struct bhi_core_worker *worker);
    /* Returns the processor time that the worker's process has used in its life; 0: unknown. */
    uint64_t (*cpu_ns)(const struct bhi_core_worker *worker);
    /* Kills the worker's process. bhi_core_worker_died reports the death later. */
    void (*kill)(struct bhi_core_worker *worker);
    /* Asks for a call of bhi_core_worker_result soon after the next result is there. */
    void (*notify)(struct bhi_core_worker *worker);
    /* Asks for a call of bhi_core_worker_deadline at |when_ns| or soon after. */
    void (*arm)(struct bhi_core *core, uint64_t when_ns);
    /* The submission was released or put back into its queue: threads that wait for it must look
     * again which worker to watch. */
    void (*turned)(struct bh_event *event);
    /* The event has just become READY or POISONED. Called once for each event. The op must call
     * bhi_observers_tell. */
    void (*ended)(struct bh_event *event);
    void (*free_event)(struct bh_event *event); /* the last reference is gone */
    /* Writes the kernel of a command into the verdict (BH_NO_COMMAND: the submission's only kernel,
     * if it has only one), and may add details to the message. The rest of the verdict is complete.
     */
    void (*name_kernel)(const struct bhi_submission *submission, uint32_t command_index,
                        bh_verdict *verdict);
    /* The submission has ended, or was never queued. The core keeps nothing of it. */
    void (*free_submission)(struct bhi_submission *submission);
    /* Returns true if the submission must not run; |out| says why, and its message is valid until
     * the next call. Called when it is queued, and again before it is released. */
    bool (*refuse)(const struct bhi_submission *submission, struct bhi_outcome *out);
    /* Returns true if one of its kernels is suspected of a failure that another kernel may have
     * caused. It then gets a worker that was given no other code (T2). Called before it is
     * released. */
    bool (*on_trial)(const struct bhi_submission *submission);
    /* Drop one reference: to a buffer, taken for bhi_submission_use; to a stream, taken by
     * bhi_submission_enqueue. */
    void (*unref_buffer)(struct bhi_content *content);
    void (*unref_stream)(struct bhi_core_stream *stream);
    void (*ref_stream)(struct bhi_core_stream *stream);
    /* The worker is dead, and its device may write the buffer until bhi_core_worker_died (C3): publish
     * for another worker returns BHI_LANE_FULL while it does. The buffer is referenced. */
    void (*writes_on)(struct bhi_core_worker *worker, struct bhi_content *content);
    /* The stream has got a worker, has lost it, or cannot have one. */
    void (*stream_changed)(struct bhi_core_stream *stream);
};

struct bhi_core {
    const struct bhi_core_ops *ops;
    uint64_t newest;          /* id of the newest queued event */
    uint64_t ticks;           /* number of origins of poison so far; gives their order (E7) */
    struct bhi_list pumpable; /* bhi_core_stream.pump_link: bhi_core_pump looks at them */
    struct bhi_list ripples;  /* bhi_submission.ripple: their dependents must be updated */
    struct bhi_list sweeps;   /* bhi_core_stream.sweep_link: strict streams that have just failed */
    bool rippling;
};

void bhi_core_init(struct bhi_core *core, const struct bhi_core_ops *ops);
/* The pump: moves submissions that a change has made ready from queues into lanes. Call it after all
 * other functions, before the lock is dropped. */
void bhi_core_pump(struct bhi_core *core);

#endif
