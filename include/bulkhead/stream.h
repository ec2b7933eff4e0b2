/* Streams: ordered queues of submissions, each with a worker of its own. */
#ifndef BULKHEAD_STREAM_H
#define BULKHEAD_STREAM_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much one worker runs before a new one replaces it (T3). It limits what a kernel that has
 * taken over its worker can change (docs/trust.md). A planned replacement costs no restart budget.
 * The next worker serves the stream once the old one is confirmed dead. */
typedef enum bh_isolation {
    BH_ISOLATION_STREAM,     /* everything that is submitted to the stream */
    BH_ISOLATION_KERNEL,     /* submissions of one kernel, or all of the same several ones, until
                                one of another kernel comes; copies and fills do not count */
    BH_ISOLATION_SUBMISSION, /* one submission that launches a kernel, including its compilation.
                                The stream starts the next worker while this one works */
} bh_isolation;

/* How a stream works. */
typedef struct bh_stream_options {
    size_t struct_size;   /* sizeof(bh_stream_options) */
    const char *name;     /* for verdicts and logs; NULL: "stream-" and a number; cut after 63
                             bytes */
    const char *device;   /* DRIVER:INDEX as `bulkhead devices` shows it ("nvidia:1"); DRIVER alone:
                             its first device; INDEX alone (at most 63): a device of the default
                             driver; "" or
                             NULL: the first device of the default driver; "any": the least loaded
                             of the default driver's devices, chosen when the stream gets a worker
                             (docs/operating.md) */
    uint64_t deadline_ns; /* for submissions that set none, counted from the end of compiling, or
                             from their turn on the worker if nothing is compiled; default 10 s.
                             With BH_FOREVER a kernel that never ends blocks all that is queued
                             behind it or waits for it, until somebody cancels it. Drivers that end
                             each long loop by themselves end the submission earlier: LOOP_LIMIT */
    uint64_t compile_deadline_ns; /* how long compiling may take when a submission uses kernels for
                                     the first time; not part of |deadline_ns|; default 60 s. After
                                     it the worker is killed: COMPILE_FAILED, executed no, blame
                                     suspected at most. It is processor time of the worker; by the
                                     clock it may take four times as long on a busy machine */
    uint64_t grace_ns;            /* time to stop cooperatively after the deadline or a cancel; then
                                     the worker is killed; default 250 ms; BH_OFF: killed at once.
                                     Trusted kernels, and devices without the feature abortWord,
                                     cannot stop cooperatively */
    uint64_t memory_limit;        /* bytes that a worker may use besides buffers, at least 64 MiB;
                                     default 4 GiB; BH_OFF: no limit. If a memory cgroup enforces
                                     it, the copies of inputs that some devices (NVIDIA) need
                                     count, too */
    const char *tenant;     /* the user or customer whose kernels the stream runs. Quarantine and
                               pipeline caches are per tenant (quarantine.h); NULL: ""; at most 63
                               bytes */
    bool strict;            /* true: after a submission is poisoned, all later ones on the stream
                               end STREAM_FAILED, with the same origin, until bh_stream_reset (E4).
                               Submissions on other streams that depend on the later ones end
                               STREAM_FAILED, too. Default false: only submissions that depend on
                               the poisoned one are poisoned */
    bh_isolation isolation; /* how much one worker runs; default BH_ISOLATION_STREAM */
    uint64_t device_memory; /* limit of the device memory of all buffers that were created for this
                               stream, in bytes; default: no limit (D6). On a CUDA device the
                               worker's context counts, too, as 322 MiB, and a lower limit is
                               INVALID_ARGUMENT (docs/cuda.md) */
    uint32_t processor;     /* 1 + the number of the processor on which alone the stream's workers
                               run, with all their threads; default: on all that the process may
                               use. A CPU driver then runs kernels on that one. UNSUPPORTED if a
                               worker may not run there */
    uint64_t nice; /* how much nicer than usual the stream's workers are to other processes,
                               as nice(1): 0 (default) to 19. On a busy machine they then get less
                               processor time; each step takes about a fifth away. It does not
                               order work on a GPU */
} bh_stream_options;

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
/* Forgets the failures of all submissions made before the call. This includes submissions that are
 * still running and fail afterwards. bh_stream_synchronize no longer returns them, and a strict
 * stream runs submissions again. Events keep their verdicts, and buffers stay poisoned until they
 * are overwritten. Refills the restart budget: a stream that is UNAVAILABLE gets a worker again.
 * (UNAVAILABLE also ends by itself after restart_window_ns, at the next submission or
 * bh_stream_wait_ready. NO_DEVICE and UNSUPPORTED last until reset.) If a dying worker blocks its
 * device for 2 s or longer, all streams of its tenant may become UNAVAILABLE. The call ends this
 * for the stream's tenant (docs/trust.md). */
BH_API BH_MUST_USE bh_status bh_stream_reset(bh_stream *stream, bh_detail *detail);
/* Cancels, as bh_event_cancel does, everything that was submitted to the stream before the call and
 * has not ended. Cancels the newest first, so that no queued submission starts. Copies of
 * the library's own go on, because other streams may need them. Wait with
 * bh_stream_synchronize. Returns BH_OK or BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_stream_cancel(bh_stream *stream);
/* Returns the process id of the worker that serves the stream now, 0 if there is none. For
 * diagnostics and tests: the worker may be dead when the call returns. */
BH_API int32_t bh_stream_worker_pid(bh_stream *stream);
/* Writes the selector of the device that the stream runs on ("nvidia:1", as in bh_device_info). It
 * is "" before the first worker is ready. For the device "any" it is also "" while the stream may
 * still move to another device. Returns BH_OK, BH_INVALID_ARGUMENT (out_selector is NULL) or
 * BH_FORKED. */
BH_API bh_status bh_stream_device(bh_stream *stream, char out_selector[48]);
/* Adds a reference. */
BH_API void bh_stream_retain(bh_stream *stream);
/* Drops a reference. After the last one the stream's submissions finish, then its worker ends. A
 * kernel that hangs without a deadline keeps the worker until bh_context_destroy: cancel it
 * first. */
BH_API void bh_stream_release(bh_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
