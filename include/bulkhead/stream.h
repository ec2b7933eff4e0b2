/* Streams: ordered queues of submissions, each with a worker of its own. */
#ifndef BULKHEAD_STREAM_H
#define BULKHEAD_STREAM_H

#include <bulkhead/detail.h>
#include <bulkhead/sized.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much one worker runs before another takes its place (T3). A kernel that takes over its worker
 * can change the results of that worker's later submissions, and how they end. Isolation limits
 * which submissions those are (docs/trust.md). A planned replacement costs no
 * restart budget. The next worker serves the stream once the old one is confirmed dead. */
typedef enum bh_isolation {
    BH_ISOLATION_STREAM,     /* everything that is submitted to the stream */
    BH_ISOLATION_KERNEL,     /* one kernel's consecutive submissions, with copies and fills */
    BH_ISOLATION_SUBMISSION, /* one submission that launches something, and the compile of its
                                kernel. The stream gives its worker one submission at a time; the
                                next worker starts meanwhile */
} bh_isolation;

/* How a stream works. Call bh_stream_options_init first. */
typedef struct bh_stream_options {
    size_t struct_size;   /* set by bh_stream_options_init */
    const char *name;     /* for verdicts and logs; NULL: "stream-" and a number; cut after 63
                             bytes */
    const char *device;   /* DRIVER, DRIVER:INDEX or INDEX, as `bulkhead devices` shows them
                             ("lavapipe", "nvidia:1", "0"); "" or NULL: the default device;
                             "any": the least loaded of the default driver's devices, chosen when
                             the stream gets a worker (docs/devices.md) */
    uint64_t deadline_ns; /* for submissions that set none, counted from their turn on the worker;
                             default 10 s. With BH_FOREVER a kernel that never ends blocks all that
                             is queued behind it or waits for it, until somebody cancels it */
    uint64_t compile_deadline_ns; /* how long compiling may take when a submission uses kernels for
                                     the first time; not part of |deadline_ns|; default 60 s. After
                                     it the worker is killed: COMPILE_FAILED, executed no */
    uint64_t grace_ns;            /* time to stop cooperatively after the deadline or a cancel; then
                                     the worker is killed; default 250 ms; 0: killed at once.
                                     Trusted kernels, and devices without the feature abortWord,
                                     cannot stop cooperatively */
    uint64_t memory_limit;        /* bytes that a worker may use besides buffers, at least 64 MiB;
                                     default 4 GiB; 0: no limit. Where the limit is a memory cgroup,
                                     it includes the copies of inputs that some devices (NVIDIA)
                                     need */
    const char *tenant;     /* the user or customer whose kernels the stream runs. Quarantine and
                               pipeline caches are per tenant (quarantine.h); NULL: ""; at most 63
                               bytes */
    bool strict;            /* true: after a submission is poisoned, all later ones on the stream
                               end STREAM_FAILED, with the same origin, until bh_stream_reset (E4).
                               Submissions on other streams that depend on the later ones end
                               STREAM_FAILED, too. Default false: only submissions that depend on
                               the poisoned one are poisoned */
    bh_isolation isolation; /* how much one worker runs; default BH_ISOLATION_STREAM */
    uint64_t device_memory; /* limit of the buffers in device memory made for the stream, in bytes;
                               default 0: no limit (D6) */
} bh_stream_options;

/* Fills in the defaults. */
BH_INLINE void bh_stream_options_init(bh_stream_options *options) {
    bh_stream_options_init_sized(options, sizeof *options);
}

/* Creates a stream, and starts a worker for it or takes a spare one (with
 * bh_context_options.worker_idle_ns only at the first submission). Does not wait for the worker. If
 * the stream cannot get a worker, its submissions are poisoned UNAVAILABLE or NO_DEVICE. |options|
 * may be NULL. Returns BH_OK, BH_NO_MEMORY, BH_CLOSED, or BH_SYSTEM with EMFILE (fewer than 24
 * descriptors are free for the first stream, 12 for another one). */
BH_API BH_MUST_USE bh_status bh_stream_create(bh_context *context, const bh_stream_options *options,
                                              bh_stream **out_stream, bh_detail *detail);
/* Waits until the stream has a worker that is ready. Blocks. Returns BH_OK, BH_TIMEOUT, or the
 * reason why it cannot have one: BH_UNAVAILABLE, BH_NO_DEVICE, BH_UNSUPPORTED, BH_SYSTEM,
 * BH_CLOSED. */
BH_API BH_MUST_USE bh_status bh_stream_wait_ready(bh_stream *stream, uint64_t timeout_ns,
                                                  bh_detail *detail);
/* Waits until all submissions made to the stream before the call have ended. Blocks. Returns BH_OK,
 * BH_TIMEOUT (nothing changed), or the code of the earliest poisoned submission since the stream
 * was created or reset. The call does not clear that code (E2). */
BH_API BH_MUST_USE bh_status bh_stream_synchronize(bh_stream *stream, uint64_t timeout_ns,
                                                   bh_detail *detail);
/* Forgets the failures of all submissions made before the call, including those that fail later:
 * bh_stream_synchronize no longer returns them, and a strict stream runs submissions again. Events
 * keep their verdicts, and buffers stay poisoned until they are overwritten. Refills the restart
 * budget: a stream that is UNAVAILABLE gets a worker again. (UNAVAILABLE also ends by itself after
 * restart_window_ns, at the next submission or bh_stream_wait_ready. NO_DEVICE and UNSUPPORTED last
 * until reset.) A worker that blocks a device for long while it dies is charged to its tenant. The
 * call clears that charge for the stream's tenant (docs/deadlines.md). */
BH_API BH_MUST_USE bh_status bh_stream_reset(bh_stream *stream, bh_detail *detail);
/* Cancels, as bh_event_cancel does, everything that was submitted to the stream before the call and
 * has not ended. Begins with the newest, so that nothing starts meanwhile. Wait with
 * bh_stream_synchronize. Returns BH_OK or BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_stream_cancel(bh_stream *stream);
/* Returns the process id of the worker that serves the stream now, 0 if there is none. For
 * diagnostics and tests: the worker may be dead when the call returns. */
BH_API int32_t bh_stream_worker_pid(bh_stream *stream);
/* Writes the selector of the device that the stream runs on ("nvidia:1", as in bh_device_info). It
 * is "" until a worker has been ready, and while a stream of the device "any" may still get another
 * device. Returns BH_OK, BH_INVALID_ARGUMENT (out_selector is NULL) or BH_FORKED. */
BH_API bh_status bh_stream_device(bh_stream *stream, char out_selector[48]);
/* Adds a reference. */
BH_API bh_status bh_stream_retain(bh_stream *stream);
/* Drops a reference. After the last one the stream's submissions finish, then its worker ends. A
 * kernel that hangs without a deadline keeps the worker until bh_context_destroy: cancel it
 * first. */
BH_API bh_status bh_stream_release(bh_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
