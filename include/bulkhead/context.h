/* Contexts: what owns streams, workers, buffers and kernels. */
#ifndef BULKHEAD_CONTEXT_H
#define BULKHEAD_CONTEXT_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How important a line of the log is. */
typedef enum bh_log_level {
    BH_LOG_ERROR,   /* something does not work: a stream cannot have a worker */
    BH_LOG_WARNING, /* something failed, and work goes on: a worker died */
    BH_LOG_INFO,    /* something ordinary: a worker is ready */
    BH_LOG_DEBUG,   /* details, such as pipeline caches */
} bh_log_level;

/* Receives one line of the log, without a line end. The line is valid during the call. Called from
 * a thread that serves the whole context, so return soon. A function that would have to wait here
 * returns BH_IN_CALLBACK, and so does one whose comment says "Not in a log callback". */
typedef void (*bh_log_callback)(bh_log_level level, const char *line, void *user);

/* How a context works. */
typedef struct bh_context_options {
    size_t struct_size;         /* sizeof(bh_context_options) */
    const char *worker_path;    /* the bulkhead-worker executable; NULL: $BULKHEAD_WORKER (not in a
                                set-uid program), then beside or below the library, then the
                                installed one */
    const char *runtime_dir;    /* where the context makes its private folder, mode 0700; NULL:
                                $XDG_RUNTIME_DIR if no other user can write to it and its path is
                                no longer than 56 bytes, otherwise /tmp.
                                |runtime_dir| must be one of two: owned by the effective user and
                                not writable by others; or sticky, and owned by that user or root.
                                Otherwise bh_context_create returns BH_SYSTEM with EPERM. A path
                                of more than 56 bytes, or that is not UTF-8 or has control
                                characters, is INVALID_ARGUMENT.
                                The library removes what killed programs left there */
    uint64_t spares;            /* ready workers for each device and memory limit in use; default 1;
                                BH_OFF: none */
    uint32_t restart_budget;    /* how many counted deaths of its workers within restart_window_ns a
                                stream survives; one more makes it UNAVAILABLE. At least 1; default
                                16. A death counts only if the worker had completed nothing and no
                                submission is to blame, nor somebody else who killed it. Of such
                                kills a stream that waits survives eight times as many in a row. The
                                second death in a row before a result delays the next worker by 10
                                ms; each further one doubles the delay, to at most 1 s */
    uint64_t restart_window_ns; /* the budget refills evenly, but not between failed starts in a
                                    row; an empty one is full again after this time. A stream whose
                                    budget is spent stays UNAVAILABLE for this time; default 60 s;
                                    BH_OFF: no death counts */
    uint64_t start_timeout_ns;  /* a worker that is not ready after this time is killed; default
                                    30 s */
    uint64_t pool_limit;        /* bytes of released buffers to keep for new buffers: so many bytes
                                   in the host, and so many in GPUs. Memory in use does not count;
                                   default a 16th of the machine's memory, at most 1 GiB; BH_OFF:
                                   none */
    uint32_t kernel_limit;      /* kernels that a worker keeps, at least 1; default 1024. It drops
                                   the least recently used ones, and gets them again when they are
                                   used again. Kernels in flight stay (docs/kernels.md) */
    uint64_t kernel_limit_bytes; /* bytes of SPIR-V that a worker keeps; default 64 MiB */
    uint64_t quarantine_deaths;  /* a kernel that has ended this many workers of one tenant is
                                    refused (quarantine.h); default 2; BH_OFF: never */
    uint64_t quarantine_ns;  /* how long a kernel stays quarantined after its last death, and how
                                long one whose compilation ended its worker is refused; default 10
                                min; BH_OFF: no kernel is refused */
    const char *cache_dir;   /* folder for pipeline caches, so that another process need not compile
                                again; NULL: none. Created with mode 0700 if it is missing. It holds
                                a file for each tenant, device, driver and kernel. A user who can
                                write to the folder can change what kernels compute: it must belong
                                to this user, and be writable by nobody else. Streams with an
                                isolation use none (docs/kernels.md) */
    bh_log_callback log;     /* receives each line that the library logs (a death, a failed start, a
                                worker that is ready), and each line of a worker ("worker PID: …",
                                such as how long a kernel took to compile); NULL: lines are
                                dropped */
    void *log_user;          /* passed to |log| */
    uint64_t worker_idle_ns; /* by default a stream has a worker from its creation on. Otherwise a
                                stream gets its worker with its first submission, or with
                                bh_stream_wait_ready. A worker that is idle ends after this time or
                                later, at most after twice this time. The next submission starts
                                another one. So there may be many more streams than workers. At
                                least 1 ms. BH_NEVER: an idle worker stays */
    uint64_t device_memory;  /* limit of all buffers in device memory, in bytes; default: no limit
                                (D6). What is kept there for new buffers counts, and makes room */
    uint64_t spare_kernels;  /* how many kernels a spare worker learns, at most 32; default:
                                none. A spare (see |spares|) waits for a new stream or a restart,
                                and compiles the kernels that one tenant uses most on its device;
                                then it serves that tenant alone (docs/operating.md) */
    uint64_t
        quarantine_deadlines; /* a kernel whose last launches, this many of one tenant, have all
                                      passed their deadline is refused (quarantine.h); default:
                                      never */
    const char *chaos; /* faults to test the caller with, such as "seed=7 device_lost=1%" (see
                          docs/chaos.md); NULL: none. Another text is INVALID_ARGUMENT, and the
                          detail says where it is wrong. What ends by such a fault has the reason
                          INJECTED */
    bool chaos_from_environment; /* $BULKHEAD_CHAOS replaces |chaos|, if it is set (not in a set-uid
                                    program); default: the variable is not looked at */
} bh_context_options;

/* Creates a context: its threads and its private folder. It starts no worker.
 * |options| may be NULL. Returns BH_OK;
 *   BH_SYSTEM       a system call failed. EMFILE: fewer than 40 descriptors are free, or the hard
 *                   limit is under 64 (docs/operating.md)
 *   BH_UNAVAILABLE  there is no worker executable
 *   BH_UNSUPPORTED  the kernel is too old: it has no futex_waitv
 *   BH_NO_MEMORY    the host is out of memory */
BH_API BH_MUST_USE bh_status bh_context_create(const bh_context_options *options,
                                               bh_context **out_context, bh_detail *detail);

/* Ends everything. Pending events are poisoned CONTEXT_CLOSED, workers are killed and reaped, and
 * waiting threads wake up. Each waiting thread must hold a reference to the object for which it
 * waits. Objects that the caller still holds can be queried and released. Calls that would create
 * or queue something return BH_CLOSED. bh_stream_synchronize returns the stream's earliest failure,
 * as before.
 *
 * Blocks until no process, socket or file of the context is left, which takes a few milliseconds
 * for each worker. NULL is allowed. Returns BH_OK; or, having done nothing, BH_CLOSED (destroyed
 * before), BH_FORKED, or BH_IN_CALLBACK (called from a log callback of any context). */
BH_API bh_status bh_context_destroy(bh_context *context);

/* Waits until all submissions made before the call have ended, on every stream, including streams
 * that the caller has released; and for compiles, whose failures it does not return. A death does
 * not prolong the wait without limit: the worker's
 * submissions end, or run on the next worker (E13). Blocks. Returns BH_OK, BH_TIMEOUT (nothing
 * changed), BH_IN_CALLBACK, or the code of the earliest poisoned submission, except those that
 * bh_stream_reset or bh_context_reset has forgotten. The call does not clear that code (E2). */
BH_API BH_MUST_USE bh_status bh_context_synchronize(bh_context *context, uint64_t timeout_ns,
                                                    bh_detail *detail);
/* Makes bh_context_synchronize forget two kinds of failures: of loads, and of streams that the
 * caller has released. For other streams call bh_stream_reset. Verdicts of events stay. Returns
 * BH_OK or BH_CLOSED. */
BH_API BH_MUST_USE bh_status bh_context_reset(bh_context *context, bh_detail *detail);

/* Writes what the context is doing now, for a person or a log: a line for each stream (its worker,
 * what is in flight and queued, which kernel runs and for how long, what the oldest queued
 * submission waits for), each spare worker (how many kernels of which tenant it knows) and each
 * zygote (the process that forks the workers of one driver). The wording may change. Writes at most
 * |size| bytes with a NUL; |text| may be NULL if |size| is 0. Returns the length of the whole text
 * without its NUL, like snprintf. Changes nothing. Blocks for at most a second; if it cannot look
 * at the context by then, the text says so. */
BH_API size_t bh_context_describe(bh_context *context, char *text, size_t size);

/* Gives memory that the pools keep back to the machine, least recently used first, until the pool
 * of host memory and that of device memory keep at most |bytes| each. Host memory is kept of
 * released buffers, and of bh_buffer_write and bh_buffer_read on device memory: up to 8 MiB for
 * each direction of a stream, and more if several threads call them at once. Memory that a buffer
 * or a submission uses is in no pool (B3). |bytes| 0 also ends idle file loaders; the next load
 * starts a new one. It also drops the modules that are kept for equal sources (source.h). The
 * library trims by itself when it runs out of memory or descriptors. Returns BH_OK, BH_CLOSED or
 * BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_context_trim(bh_context *context, uint64_t bytes,
                                             bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
