/* Bulkhead: runs GPU compute kernels that may crash, hang or lie, and keeps the program that
 * submitted them alive.
 *
 * The calling process is the supervisor. Each stream is a sandboxed worker process that owns a
 * Vulkan device. What a worker does wrong becomes a poisoned event: a final verdict that flows to
 * dependent work and to nothing else. Rules cited as E1, B1, … are in docs/semantics.md.
 *
 * Conventions
 *   Times are nanoseconds of CLOCK_MONOTONIC, timeouts are relative nanoseconds, BH_FOREVER waits
 *   without limit, 0 does not wait. Sizes and offsets are bytes.
 *   Every function may be called from any thread unless its comment says otherwise. A function
 *   blocks only where its comment says so.
 *   |detail| may be NULL; otherwise it is filled in whenever the result is not BH_OK. Nothing is
 *   allocated for it.
 *   Where a call that gives out an object fails, *out_… is NULL.
 *   Objects are reference-counted: create gives one reference, retain takes one, release drops one;
 *   NULL is fine. What a submission uses stays alive until that submission has ended, whatever the
 *   caller releases meanwhile (B2). The caller's references are counted apart from the library's:
 *   an object that the caller has released for the last time is answered with
 *   BH_INVALID_ARGUMENT (a destroyed context with BH_CLOSED), also by another release, and nothing
 *   else happens. That is for finding mistakes, not for relying on: after some time its memory
 *   belongs to another object of the same type.
 *   A pointer argument that must not be NULL and is: BH_INVALID_ARGUMENT.
 *   In a completion callback (bh_event_on_end) a call that would have to wait answers
 *   BH_IN_CALLBACK at once and changes nothing.
 *   In the child of a fork() calls that would do or wait for something answer BH_FORKED
 *   (releases, too, and do nothing); looks at what had ended before still work. The parent goes
 *   on undisturbed.
 *   Structs grow at their end, and a program that was built with an older 0.2 still works: each
 * call tells the library how large the structs are that it is given. The inline functions do that;
 *   they, and |struct_size|, are all that there is to it (docs/abi.md). A size that the library
 * does not know, or a field of a newer header that is set: BH_INVALID_ARGUMENT. The library
 * installs no signal handlers, changes no process-wide state, prints nothing. It has a few threads
 * of its own per context, with all signals blocked. A context with streams has one child process,
 * the warden, and one that has opened files another: reap them or not, as you like, but a loop that
 * waits until there are no children at all ends only after bh_context_destroy.
 */
#ifndef BULKHEAD_BULKHEAD_H
#define BULKHEAD_BULKHEAD_H

#include <bulkhead/sized.h>
#include <bulkhead/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of these headers; bh_version() is the library's. Before 1.0 a program and a library fit where
 * major and minor are the same: the library's SONAME has both (docs/abi.md). */
#define BH_VERSION_MAJOR 0
#define BH_VERSION_MINOR 2
#define BH_VERSION_PATCH 0
#define BH_VERSION_NUMBER(major, minor, patch)                                                     \
    ((uint32_t)(major) << 24 | (uint32_t)(minor) << 12 | (uint32_t)(patch))
#define BH_VERSION BH_VERSION_NUMBER(BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH)

#define BH_FOREVER    UINT64_MAX
#define BH_WHOLE_SIZE UINT64_MAX
#define BH_NO_COMMAND UINT32_MAX

typedef struct bh_context bh_context;
typedef struct bh_stream bh_stream;
typedef struct bh_event bh_event;
typedef struct bh_buffer bh_buffer;
typedef struct bh_kernel bh_kernel;

/* What went wrong with a call. The caller owns it. Its size never changes: what comes to be added
 * takes the place of |reserved|, which is 0. */
typedef struct bh_detail {
    bh_status status;
    int32_t sys_errno; /* 0: none */
    char message[512]; /* one line, names the argument or the call; NUL-terminated */
    bh_status cause;   /* of COMPILE_FAILED, where the compiler ended without an answer: what ended
                          it (DEADLINE, OUT_OF_HOST_MEMORY, WORKER_SIGNAL, ...); else BH_OK */
    int32_t signal;    /* that killed it; 0: none */
    uint64_t reserved[5];
} bh_detail;

/* The version of the library that the program runs with: BH_VERSION of its headers, and
 * "MAJOR.MINOR.PATCH", a constant string. Thread: any. Do not block. */
BH_API uint32_t bh_version(void);
BH_API const char *bh_version_string(void);

/* -- context -------------------------------------------------------------------------------- */

typedef struct bh_context_options {
    size_t struct_size;      /* set by bh_context_options_init */
    const char *worker_path; /* the bulkhead-worker executable; NULL: $BULKHEAD_WORKER (not in a
                                set-uid program), beside or below the library, the installed one */
    const char *runtime_dir; /* parent of the private 0700 folder; NULL: $XDG_RUNTIME_DIR where that
                                is ours alone, /tmp. It has to be the effective user's and not to be
                                written by others, or sticky and the user's or root's: else
                                BH_SYSTEM, EPERM. What killed hosts left in it is removed */
    uint32_t spares;         /* warm workers kept ready for new streams and restarts; default 1 */
    uint32_t restart_budget; /* workers of one stream that may die without having completed anything
                                in restart_window_ns before it answers BH_UNAVAILABLE; a death in
                                mid-job is its submission's fault and free; default 16. From the
                                second such death in a row on the next worker is delayed: 10 ms,
                                doubling to 1 s */
    uint64_t restart_window_ns; /* in which a spent budget refills, evenly; default 60 s; also how
                                   long UNAVAILABLE lasts */
    uint64_t start_timeout_ns;  /* a worker that is not ready by then is killed; default 30 s */
    uint64_t pool_limit; /* bytes of memory of released buffers that are kept for new ones, besides
                            what is in use; default a 16th of the machine's memory, 1 GiB at most;
                            0: none is kept */
    uint32_t kernel_limit; /* how many kernels a worker keeps at a time, at least 1; default 1024.
                              The longest unused ones are forgotten, and introduced again when they
                              are used again; what is in flight always stays (docs/kernels.md) */
    uint64_t kernel_limit_bytes; /* and how many bytes of SPIR-V; default 64 MiB */
    uint32_t quarantine_deaths;  /* a kernel that has ended so many workers of one tenant is refused
                                    (bulkhead/quarantine.h); default 2; 0: never for that */
    uint64_t quarantine_ns; /* for how long after the last one, and how long a kernel that ended the
                               driver's compiler is; default 10 min; 0: neither is remembered */
    const char *cache_dir;  /* a folder for pipeline caches, so that what was compiled once need not
                               be again in another process: a file for each tenant, device and
                               driver, sealed with a key that is made there. Made 0700 where it is
                               missing. Not to be shared with whom you do not trust. NULL: none
                               (docs/kernels.md) */
    /* Called for each line that a worker or the library logs (a death, a failed
     * start, a stream that can have no worker, a worker that is ready), from a thread which
     * serves the whole context: it should return soon. What it may call is what a completion
     * callback may (bh_event_on_end): a call that would have to wait answers BH_IN_CALLBACK. NULL:
     * dropped. |level| 0 error, 1 warning, 2 info, 3 debug. */
    void (*log)(void *user, int level, const char *line);
    void *log_user;
} bh_context_options;

BH_INLINE void bh_context_options_init(bh_context_options *options) {
    bh_context_options_init_sized(options, sizeof *options);
}

/* Makes a context: a reactor thread, a ZeroMQ context, a private folder. No worker yet. |options|
 * may be NULL. Returns BH_OK, BH_INVALID_ARGUMENT, BH_NO_MEMORY, BH_SYSTEM (with EMFILE: fewer than
 * 40 descriptors are free, or the hard limit is under 64: docs/descriptors.md), BH_UNAVAILABLE
 * (there is no worker executable), or BH_UNSUPPORTED (kernel too old: futex_waitv). Does not block.
 */
BH_API BH_MUST_USE bh_status bh_context_create(const bh_context_options *options,
                                               bh_context **out_context, bh_detail *detail);

/* Ends everything: events still pending are poisoned CONTEXT_CLOSED, workers are killed and
 * reaped, waiters in other threads wake (their objects must be referenced, the context need not).
 * Objects that the caller still holds stay valid to query and release; calls that would queue or
 * make something answer BH_CLOSED, and bh_stream_synchronize the stream's earliest failure, as
 * before (CONTEXT_CLOSED where this was the first). NULL is fine. Blocks until no process, socket
 * or file of the context is left (bounded: a few milliseconds a worker) and all registered
 * completion callbacks have returned (bounded by what they do). Returns BH_OK, or, having done
 * nothing, BH_CLOSED (it was destroyed before), BH_FORKED or BH_IN_CALLBACK: not from a completion
 * callback, of whichever context, nor from the log function. */
BH_API bh_status bh_context_destroy(bh_context *context);
/* Blocks until all that was submitted before the call has ended, on every stream of the context,
 * those included that the caller has released; what others submit meanwhile does not count. Returns
 * BH_OK, BH_TIMEOUT (nothing changed), or the code of the earliest poisoned submission of them all
 * that no reset has forgotten: observing does not clear it (E2). A worker's death ends what it had,
 * and so does bh_context_destroy in another thread. */
BH_API BH_MUST_USE bh_status bh_context_synchronize(bh_context *context, uint64_t timeout_ns,
                                                    bh_detail *detail);
/* Forgets, for bh_context_synchronize, the failures of streams that are gone and of loads; those of
 * other streams bh_stream_reset forgets. Verdicts of events stay. Returns BH_OK or BH_CLOSED. Does
 * not block. */
BH_API BH_MUST_USE bh_status bh_context_reset(bh_context *context, bh_detail *detail);

/* Writes what the context is doing now into |text|, for a person: a line for each stream (its
 * worker, what is in flight and queued, which kernel runs and for how long, what the oldest of the
 * rest waits for), for each spare worker, for each zygote. For logs, and for a host that finds
 * itself waiting too long. The wording may change. At most |size| bytes, NUL-terminated where
 * |size| is not 0; |text| may be NULL where it is. Returns how long the whole text is without its
 * NUL, like snprintf. It takes no reference and changes nothing. Blocks for a second at most: when
 * the context cannot be looked at by then, the text says so. */
BH_API size_t bh_context_describe(bh_context *context, char *text, size_t size);

/* What the context's pool keeps, and what it has done since the context was made. */
typedef struct bh_pool_stats {
    uint64_t bytes;        /* kept now: of buffers that are gone, not of those that are there */
    uint64_t blocks;       /* kept now */
    uint64_t hits;         /* buffers that were made of memory that was kept */
    uint64_t misses;       /* buffers that the pool could have served, and had nothing for */
    uint64_t evictions;    /* blocks given back to the machine: over pool_limit, or trimmed */
    uint64_t zeroed_bytes; /* overwritten with zeroes for reuse */
} bh_pool_stats;

/* Gives memory that the pool keeps back to the machine, the longest unused first, until it keeps
 * |bytes| at most. What a buffer or a submission still uses is not in the pool, and stays as it is
 * (B3). 0: all of it, and the loaders of files that have nothing to do end soon, with their memory
 * and descriptors; the next load starts one anew. The library trims by itself when it runs out of
 * memory or descriptors for a buffer. Returns BH_OK, BH_INVALID_ARGUMENT, BH_CLOSED, BH_FORKED.
 * Does not block. */
BH_API BH_MUST_USE bh_status bh_context_trim(bh_context *context, uint64_t bytes,
                                             bh_detail *detail);
/* Returns BH_OK, BH_INVALID_ARGUMENT, BH_CLOSED, BH_FORKED (all zero then). Does not block. */
BH_INLINE BH_MUST_USE bh_status bh_context_pool_stats(bh_context *context, bh_pool_stats *out_stats,
                                                      bh_detail *detail) {
    return bh_context_pool_stats_sized(context, out_stats, sizeof *out_stats, detail);
}

/* -- streams -------------------------------------------------------------------------------- */

/* How much one worker may run (T3). A kernel that takes its worker over can change what that worker
 * does for later submissions: which result it leaves, how it ends. Isolation decides which those
 * are (docs/trust.md). A planned replacement costs no restart budget. It waits until the old worker
 * is confirmed dead; the new one is a spare where there is one, and for BH_ISOLATE_SUBMISSION the
 * next is started while one works. */
typedef enum bh_isolation {
    BH_ISOLATE_STREAM,     /* all that is submitted to the stream */
    BH_ISOLATE_KERNEL,     /* one kernel as often as it comes in a row, and copies and fills */
    BH_ISOLATE_SUBMISSION, /* one submission that launches something, and what has prepared its
                              kernel; one is in the lane at a time */
} bh_isolation;

typedef struct bh_stream_options {
    size_t struct_size;   /* set by bh_stream_options_init */
    const char *name;     /* for verdicts and logs; NULL: "stream-<n>"; at most 63 bytes count */
    const char *device;   /* "", NULL: the default device; DRIVER, DRIVER:INDEX or INDEX, as
                             `bulkhead devices` shows them ("lavapipe", "nvidia:1", "0") */
    uint64_t deadline_ns; /* for submissions that give none; default 10 s; BH_FOREVER: none. Time
                             in the queue does not count. What is queued behind a hang without a
                             deadline, or waits for it, waits for ever */
    uint64_t compile_deadline_ns; /* for compiling what a submission uses for the first time, which
                              is no part of its run and comes before it; default 60 s; BH_FOREVER:
                              none. Past it the worker is killed: COMPILE_FAILED, executed no */
    uint64_t grace_ns;     /* what runs past its deadline, or is cancelled, is told to end, and the
                              worker goes on. Where it does not end within this time the worker is
                              killed; default 250 ms; 0: killed at once. A trusted kernel can't be
                              told, nor one on a device without the feature abortWord */
    uint64_t memory_limit; /* bytes a worker may use besides buffers, at least 64 MiB; default
                              4 GiB; 0: none. The copies through which some devices (NVIDIA) read
                              inputs count, where the limit is a memory cgroup */
    const char *tenant;    /* on whose behalf: what is remembered of kernels is for one tenant alone
                              (bulkhead/quarantine.h); NULL: ""; at most 63 bytes */
    bool strict;           /* once a submission is poisoned, all that was submitted after it ends
                              STREAM_FAILED with its origin, until bh_stream_reset (E4), and so does
                              what depends on that, on other streams, too; default false: only
                              what depends on it is poisoned */
    bh_isolation isolation; /* how much a worker runs before another takes its place; default
                               BH_ISOLATE_STREAM */
} bh_stream_options;

BH_INLINE void bh_stream_options_init(bh_stream_options *options) {
    bh_stream_options_init_sized(options, sizeof *options);
}

/* Makes a stream: an ordered queue with a worker of its own. Returns at once; the worker starts
 * (or a spare is taken) meanwhile. Returns BH_OK, BH_INVALID_ARGUMENT, BH_NO_MEMORY, BH_CLOSED, or
 * BH_SYSTEM with EMFILE (fewer than 24 descriptors are free for the first, 12 for another one).
 * When no worker can be had, its submissions are poisoned UNAVAILABLE or NO_DEVICE. */
BH_API BH_MUST_USE bh_status bh_stream_create(bh_context *context, const bh_stream_options *options,
                                              bh_stream **out_stream, bh_detail *detail);
/* Blocks until the stream has a worker that is ready. Returns BH_OK, BH_TIMEOUT, or why it cannot
 * have one: BH_UNAVAILABLE, BH_NO_DEVICE, BH_UNSUPPORTED, BH_SYSTEM, BH_CLOSED. */
BH_API BH_MUST_USE bh_status bh_stream_wait_ready(bh_stream *stream, uint64_t timeout_ns,
                                                  bh_detail *detail);
/* Blocks until all that was submitted to the stream before the call has ended. Returns BH_OK,
 * BH_TIMEOUT (nothing changed), or the code of the earliest poisoned submission since the stream
 * was made or reset: observing does not clear it (E2). */
BH_API BH_MUST_USE bh_status bh_stream_synchronize(bh_stream *stream, uint64_t timeout_ns,
                                                   bh_detail *detail);
/* Forgets past failures, for synchronize and for a strict stream: whatever was submitted before the
 * call, also if it fails only later. (Its events keep their verdicts, and buffers stay poisoned
 * until they are overwritten.) Gives the stream a fresh restart budget, too: one that is
 * UNAVAILABLE gets a worker again. (So it does by itself for the first submission, or
 * bh_stream_wait_ready, once restart_window_ns has passed; NO_DEVICE and UNSUPPORTED last until
 * reset.) Does not block. */
BH_API BH_MUST_USE bh_status bh_stream_reset(bh_stream *stream, bh_detail *detail);
/* Cancels all that was submitted to the stream before the call and has not ended: as
 * bh_event_cancel of each, the newest first, so that nothing starts meanwhile. Returns BH_OK,
 * BH_INVALID_ARGUMENT, BH_FORKED. Does not block: bh_stream_synchronize waits for the ends. */
BH_API BH_MUST_USE bh_status bh_stream_cancel(bh_stream *stream);
/* The worker that serves the stream now, as a pid of the caller's pid namespace; 0: none at the
 * moment. For diagnostics and tests: it may be dead by the time you look. */
BH_API int32_t bh_stream_worker_pid(bh_stream *stream);
BH_API bh_status bh_stream_retain(bh_stream *stream);
/* The last release lets what is submitted finish, then retires the worker. Does not block. What
 * hangs without a deadline keeps its worker until bh_context_destroy: cancel it first. */
BH_API bh_status bh_stream_release(bh_stream *stream);

/* -- buffers -------------------------------------------------------------------------------- */

/* What the caller is going to do with a mapping. */
typedef enum bh_map_intent {
    BH_MAP_READ = 1,       /* waits for the last writer; a poisoned content is refused (B5). Who
                              writes there all the same may not be seen by any worker */
    BH_MAP_READ_WRITE = 3, /* waits for writers and readers; poisoned content is refused */
    BH_MAP_DISCARD = 2,    /* waits likewise; the caller overwrites all of it: content is CLEAN */
} bh_map_intent;

/* Makes a zero-filled buffer of |size| bytes (0 is legal): a sealed memfd, mapped here, imported
 * by workers without a copy (B1). Memory is reserved now, so that touching it cannot fault; more
 * than the machine has available is refused. Returns BH_OK, BH_INVALID_ARGUMENT, BH_NO_MEMORY,
 * BH_SYSTEM, BH_TOO_LARGE (over 1 TiB), BH_CLOSED. Fresh memory costs about 1 ms a MiB.
 * Once it has been bound, and while its worker lives, its memory can be used again only for that
 * worker: a loop that makes, binds and releases buffers wants bh_buffer_create_with and its
 * |stream|, or each round gets fresh memory. */
BH_API BH_MUST_USE bh_status bh_buffer_create(bh_context *context, uint64_t size,
                                              bh_buffer **out_buffer, bh_detail *detail);

typedef enum bh_buffer_flags {
    /* It need not be zero-filled: where its memory was used before, by buffers that the worker of
     * |stream| had then and has not died since, it has what they held. Any other memory, and all of
     * it where no stream is given, is zero all the same. */
    BH_BUFFER_UNINITIALIZED = 1,
} bh_buffer_flags;

typedef struct bh_buffer_options {
    size_t struct_size; /* set by bh_buffer_options_init */
    bh_stream *stream;  /* that is going to use it most; NULL: not known. No reference is kept */
    uint32_t flags;     /* bh_buffer_flags */
} bh_buffer_options;

BH_INLINE void bh_buffer_options_init(bh_buffer_options *options) {
    bh_buffer_options_init_sized(options, sizeof *options);
}

/* As bh_buffer_create; |options| may be NULL.
 *
 * The memory of buffers that are gone is used again (pool_limit says how much is kept), but never
 * so that somebody can reach what is not his: a worker that was given memory once can read and
 * write it until it is confirmed dead, whatever it was told. So a buffer that is made without a
 * stream gets no memory that a living worker has had. One that is made for a stream may get what
 * its present worker had before, which costs neither page faults nor an import: make, bind and
 * release per job with |stream| set.
 *
 * A buffer made for a stream may be bound to any stream, like all others. But that worker may reach
 * it from the start, not from its first binding there: what the host or another stream puts into it
 * is as safe from that worker as if it had been bound to |stream| before, and no safer.
 * Returns what bh_buffer_create returns. */
BH_API BH_MUST_USE bh_status bh_buffer_create_with(bh_context *context, uint64_t size,
                                                   const bh_buffer_options *options,
                                                   bh_buffer **out_buffer, bh_detail *detail);
/* Blocks as |intent| says, at most |timeout_ns|. *out_pointer is page aligned and valid until the
 * last reference to the buffer is gone; a zero-length buffer has a pointer too. There is no unmap.
 * The pointer stays good, the content need not: a submission that comes after this call is not held
 * off by it. Map again before touching what submissions have used since; that copies nothing.
 * Returns BH_OK, BH_TIMEOUT, or the verdict's code where the content is poisoned. */
BH_API BH_MUST_USE bh_status bh_buffer_map(bh_buffer *buffer, bh_map_intent intent,
                                           uint64_t timeout_ns, void **out_pointer,
                                           bh_detail *detail);
/* Map and copy out or in. A write that covers the whole buffer cleans a poisoned content; a
 * partial write into poisoned content is refused with its verdict. Block like bh_buffer_map.
 * BH_WHOLE_SIZE is not for these: |bytes| has to have a size. */
BH_API BH_MUST_USE bh_status bh_buffer_read(bh_buffer *buffer, uint64_t offset, void *out_bytes,
                                            uint64_t size, uint64_t timeout_ns, bh_detail *detail);
BH_API BH_MUST_USE bh_status bh_buffer_write(bh_buffer *buffer, uint64_t offset, const void *bytes,
                                             uint64_t size, uint64_t timeout_ns, bh_detail *detail);
/* Makes a buffer of a memfd that the caller has: no copy, its bytes are the content (CLEAN). |size|
 * is what commands may use of it: at least 1, and no whole page less than the memfd has.
 *   The descriptor stays the caller's, to use and to close; the buffer has one of its own.
 *   The memfd has to be open for reading and writing, and sealed against shrinking, growing and
 *   further seals (F_SEAL_SHRINK, _GROW, _SEAL) or open to these seals, which are then added
 *   (MFD_ALLOW_SEALING); not sealed against writing. Holes are filled. Its write permission is
 *   taken away, so that no worker which may only read it can open it anew: whoever has a descriptor
 *   or a mapping of it keeps that, but /proc/.../fd opens it only for reading from then on.
 *   Who may write: workers, in submissions that write the buffer; the caller, through the buffer or
 *   its own descriptor and mappings, when no submission uses the buffer. What is written past the
 *   library is neither waited for nor noticed (a poisoned content stays poisoned until the buffer
 *   is overwritten through it), and a hole that is punched reads as zeros. Two buffers of one memfd
 *   know nothing of each other.
 * Returns BH_OK; BH_INVALID_ARGUMENT: not a memfd (a file, a pipe, POSIX shared memory), a
 * descriptor that is read-only or closed, seals that are missing and cannot be added or that forbid
 * writing, another size; BH_TOO_LARGE (over 1 TiB), BH_NO_MEMORY, BH_SYSTEM (the memfd belongs to
 * another user), BH_CLOSED. A memfd that is refused may have got seals. Does not block. */
BH_API BH_MUST_USE bh_status bh_buffer_wrap_memfd(bh_context *context, int fd, uint64_t size,
                                                  bh_buffer **out_buffer, bh_detail *detail);

#define BH_MAX_RANK 32

/* Kinds of numbers, with the values of DLPack's DLDataTypeCode. */
typedef enum bh_number_kind {
    BH_NUMBER_INT = 0,     /* 8, 16, 32 or 64 bits */
    BH_NUMBER_UINT = 1,    /* 8, 16, 32 or 64 bits */
    BH_NUMBER_FLOAT = 2,   /* 8, 16, 32 or 64 bits */
    BH_NUMBER_BFLOAT = 4,  /* 16 bits */
    BH_NUMBER_COMPLEX = 5, /* 64 or 128 bits: two floats */
    BH_NUMBER_BOOL = 6,    /* 8 bits */
} bh_number_kind;

/* What a buffer's bytes are, for the programs that pass it around; DLPack's DLTensor without its
 * pointers. The library and its workers never look at it. */
typedef struct bh_description {
    size_t struct_size; /* set by bh_description_init */
    bh_number_kind kind;
    uint32_t bits;  /* of one number */
    uint32_t lanes; /* numbers in an element, 1 to 65535; default 1 */
    uint32_t rank;  /* dimensions, at most BH_MAX_RANK; 0: a single element */
    bool strided;   /* false: rows follow each other without gaps, and |strides| is not looked at */
    uint64_t offset; /* bytes from the beginning of the buffer to element 0, 0, … */
    uint64_t shape[BH_MAX_RANK];
    int64_t strides[BH_MAX_RANK]; /* in elements; may be 0 or negative */
} bh_description;

/* Sets struct_size and lanes; kind and bits are the caller's to say. */
BH_INLINE void bh_description_init(bh_description *description) {
    bh_description_init_sized(description, sizeof *description);
}
/* Attaches a copy of |description| to the buffer, in place of the one before; NULL takes it away.
 * It has to make sense: each element lies in the buffer, and neither the number of elements nor
 * their bytes exceed 2^63 - 1. Returns BH_OK, BH_INVALID_ARGUMENT (the detail names the field),
 * BH_NO_MEMORY. Does not block, changes no content, and may be called while the buffer is in use.
 */
BH_API BH_MUST_USE bh_status bh_buffer_describe(bh_buffer *buffer,
                                                const bh_description *description,
                                                bh_detail *detail);
/* The description, with its strides filled in. Without one a buffer that was loaded is the array
 * that bh_buffer_array tells of (both F8 are FLOAT, 8 bits), any other, and a loaded one of more
 * than BH_MAX_RANK dimensions, so many bytes: UINT, 8 bits, rank 1. |out_description| must have
 * been initialised. Returns BH_OK or BH_INVALID_ARGUMENT. Does not block. */
BH_API BH_MUST_USE bh_status bh_buffer_description(bh_buffer *buffer,
                                                   bh_description *out_description,
                                                   bh_detail *detail);
BH_API uint64_t bh_buffer_size(const bh_buffer *buffer);
BH_API bh_status bh_buffer_retain(bh_buffer *buffer);
BH_API bh_status bh_buffer_release(bh_buffer *buffer);

/* -- buffers from files ----------------------------------------------------------------------- */

typedef enum bh_file_format {
    BH_FILE_RAW = 1,         /* |size| bytes from |offset| on */
    BH_FILE_NPY = 2,         /* all of a .npy: format 1.0 to 3.0, C order, little endian */
    BH_FILE_SAFETENSORS = 3, /* the tensor called |tensor| */
} bh_file_format;

/* What the elements of a loaded array are. A description: nothing in the library depends on it. */
typedef enum bh_dtype {
    BH_DTYPE_NONE = 0, /* raw bytes */
    BH_DTYPE_F16 = 1,
    BH_DTYPE_F32 = 2,
    BH_DTYPE_F64 = 3,
    BH_DTYPE_I8 = 4,
    BH_DTYPE_U8 = 5,
    BH_DTYPE_I16 = 6,
    BH_DTYPE_U16 = 7,
    BH_DTYPE_I32 = 8,
    BH_DTYPE_U32 = 9,
    BH_DTYPE_I64 = 10,
    BH_DTYPE_U64 = 11,
    BH_DTYPE_BF16 = 12, /* from here on: of a .safetensors only */
    BH_DTYPE_BOOL = 13, /* a byte */
    BH_DTYPE_F8_E4M3 = 14,
    BH_DTYPE_F8_E5M2 = 15,
} bh_dtype;

typedef struct bh_file_source {
    size_t struct_size; /* set by bh_file_source_init */
    const char *path;   /* opened for reading, links followed; NULL (default): |fd| is the file */
    int fd;             /* -1 (default): |path| is. Opened anew for reading, so it is never moved,
                           and the caller's to close when the call has returned */
    bh_file_format format;
    uint64_t offset, size;      /* RAW only; size BH_WHOLE_SIZE (default) is the rest of it */
    const char *tensor;         /* SAFETENSORS only; at most 1023 bytes of UTF-8 */
    uint64_t header_timeout_ns; /* for opening it and for its header; default 10 s; never 0 */
    uint64_t deadline_ns; /* of the load, from its turn on; default 10 min; BH_FOREVER: none */
} bh_file_source;

BH_INLINE void bh_file_source_init(bh_file_source *source) {
    bh_file_source_init_sized(source, sizeof *source);
}

/* Makes a buffer whose content comes from a file, lazily (B7): it has its size when the call
 * returns, and its content is PENDING until a loader, a sandboxed worker of its own that is given
 * the open file and nothing else, has read it. Binding it makes a submission wait for that; mapping
 * waits, too. A load that fails poisons the buffer and what depends on it with LOAD_FAILED: the
 * verdict says errno, path, tensor and, where a read failed, its offset in the file (what is said
 * of a .safetensors header counts from the beginning of the data, as the header does). A loader
 * that dies poisons it with its death. Once the verdict can be seen nothing writes into the buffer
 * any more.
 *
 * The file has to be a regular one, not of /proc, /sys or the like, and has to stay as it is, and
 * where it is when it was given by its path, until the load has ended: one that is written to, cut,
 * replaced or removed meanwhile fails the load. (Who writes through a shared mapping of it is not
 * noticed: such changes leave no trace in its times.) A range or an array without a byte is fine.
 *
 * Blocks while the file is opened and the memory is reserved, as bh_buffer_create does, and for a
 * header until the loader has parsed it. The file is opened by a process of its own, with the
 * rights, the root and the current folder of the calling thread: a mount that does not answer costs
 * time, up to header_timeout_ns, and nothing else. Reserving takes about 1 ms a MiB: not a call for
 * a thread that must not stand still. In a completion callback only RAW can be had.
 * Returns BH_OK;
 *   BH_LOAD_FAILED       there will be no such buffer: it cannot be opened, it is no regular file,
 *                        its header is bad, there is no such tensor, the range leaves the file.
 *                        The detail has errno, where there is one, and names path, tensor, offset
 *   BH_TIMEOUT           the file was not opened, or its header not parsed, in time
 *   BH_INVALID_ARGUMENT  a field that the format does not have, two sources, a time of 0
 *   a verdict's code     the loader died of the header
 *   BH_UNAVAILABLE, ...  there can be no loader, or nobody to open the file
 * or what bh_buffer_create returns. */
BH_API BH_MUST_USE bh_status bh_buffer_from_file(bh_context *context, const bh_file_source *source,
                                                 bh_buffer **out_buffer, bh_detail *detail);
/* The event of the load, with a reference that is the caller's to release: to wait for, to cancel
 * (bh_event_cancel), to name among the waits of a submission. BH_INVALID_ARGUMENT: the buffer is
 * not from a file. Does not block. */
BH_API BH_MUST_USE bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event,
                                                  bh_detail *detail);
/* How many of the load's bytes are there: *out_done of *out_total, both |size| once it is READY; of
 * one that has failed none is. As the loader says: for a display, nothing else. Does not block. */
BH_API BH_MUST_USE bh_status bh_buffer_load_progress(bh_buffer *buffer, uint64_t *out_done,
                                                     uint64_t *out_total);

typedef struct bh_array_info {
    bh_dtype dtype;
    uint32_t dimensions; /* 0: one element, or raw bytes */
    uint64_t shape[64];  /* C order */
} bh_array_info;

/* What the file's header said. BH_INVALID_ARGUMENT: the buffer is not from a file. */
BH_INLINE BH_MUST_USE bh_status bh_buffer_array(const bh_buffer *buffer, bh_array_info *out_info) {
    return bh_buffer_array_sized(buffer, out_info, sizeof *out_info);
}

typedef struct bh_file_tensor {
    bh_dtype dtype; /* NONE: not known here; bh_buffer_from_file does not take it */
    uint32_t dimensions;
    uint64_t shape[64];
    uint64_t offset; /* of its data, from the beginning of the file */
    uint64_t bytes;
    char type[16]; /* the dtype as the file calls it: "BF16"; "f4" of a .npy, without byte order */
    char name[1024]; /* empty of a .npy; cut where it is longer; "?" stands for what may not be
                        shown, and such a name bh_buffer_from_file does not take either */
} bh_file_tensor;

/* Lists the arrays of a .npy (one) or .safetensors (all tensors, in the order of its header), and
 * loads none. |source| is as for bh_buffer_from_file, without a tensor; its deadline_ns is not
 * used. Fills in the first |capacity| of them (one has some 1.6 KiB: many are not for a stack);
 * *out_count is how many there are: where these are more, call again with more room. A header that
 * bh_buffer_from_file refuses is refused here with the same words.
 *
 * The header is parsed by a loader, as there, and what the loader says is checked: each tensor lies
 * in the file and has as many bytes as its shape takes.
 *
 * Blocks until the header is parsed, header_timeout_ns at most. Not in a completion callback.
 * Returns BH_OK, or what bh_buffer_from_file returns. */
BH_INLINE BH_MUST_USE bh_status bh_file_tensors(bh_context *context, const bh_file_source *source,
                                                bh_file_tensor *out_tensors, size_t capacity,
                                                size_t *out_count, bh_detail *detail) {
    return bh_file_tensors_sized(context, source, out_tensors, capacity, sizeof *out_tensors,
                                 out_count, detail);
}

/* -- kernels -------------------------------------------------------------------------------- */

/* One specialization constant (Vulkan 1.3, section 10.7.4): |size| is 1, 2, 4 or 8; booleans are 4
 * bytes; |bits| holds the value's bytes in little endian, zero-extended. */
typedef struct bh_specialization {
    uint32_t constant_id;
    uint32_t size;
    uint64_t bits;
} bh_specialization;

typedef struct bh_kernel_options {
    size_t struct_size; /* set by bh_kernel_options_init */
    const char *name;   /* for verdicts; NULL: the entry point's name; at most 63 bytes count */
    const char *entry;  /* entry point; NULL: "main" */
    const bh_specialization *specializations;
    uint32_t specialization_count; /* at most 256, ids distinct */
    bool trusted; /* the driver gets the module as it is, once it is valid: no guard (K4). Default
                     false. What it does not end by itself, the death of its worker ends
                     (docs/deadlines.md). Part of the identity */
} bh_kernel_options;

BH_INLINE void bh_kernel_options_init(bh_kernel_options *options) {
    bh_kernel_options_init_sized(options, sizeof *options);
}

/* Makes a kernel from a SPIR-V module (copied). Only its length (a multiple of 4, 20 bytes to
 * 64 MiB; of more than 4 MiB only a trusted one is compiled, docs/guard.md) and magic number are
 * looked at here: a worker validates and compiles it at first use, and a bad one poisons the
 * submissions that use it with INVALID_KERNEL or COMPILE_FAILED. Identity is a cryptographic hash
 * of all of it, never the name (K1): kernels that are the same share their code, are introduced to
 * a worker once and compiled there once, also where many threads create and launch them at the same
 * time; each keeps its name. */
BH_API BH_MUST_USE bh_status bh_kernel_create_spirv(bh_context *context, const void *code,
                                                    size_t code_size,
                                                    const bh_kernel_options *options,
                                                    bh_kernel **out_kernel, bh_detail *detail);
BH_API void bh_kernel_hash(const bh_kernel *kernel, uint8_t out_hash[32]); /* BLAKE2b-256 */
BH_API const char *bh_kernel_name(const bh_kernel *kernel); /* valid while a reference is held */
BH_API bh_status bh_kernel_retain(bh_kernel *kernel);
BH_API bh_status bh_kernel_release(bh_kernel *kernel);

typedef enum bh_binding_kind { BH_STORAGE_BUFFER = 1, BH_UNIFORM_BUFFER = 2 } bh_binding_kind;

/* Bits. What a command does with a buffer: drives dependencies and poison. */
typedef enum bh_access {
    BH_ACCESS_DECLARED = 0, /* in a bh_binding: what the kernel declares (bh_kernel_reflect) */
    BH_READ = 1,
    BH_WRITE = 2,
    BH_READ_WRITE = 3,
} bh_access;

typedef struct bh_kernel_binding {
    uint32_t set, binding;
    bh_binding_kind kind;
    bh_access access; /* from the module's decorations */
    char name[64];    /* may be empty */
    uint32_t count;   /* buffers in it: 1, or the length of an array of buffers */
} bh_kernel_binding;

typedef struct bh_kernel_info {
    uint32_t binding_count;
    bh_kernel_binding bindings[256];
    uint32_t push_size;     /* bytes of push constants the kernel declares; 0: none */
    uint32_t local_size[3]; /* workgroup size, specialization applied */
    uint64_t reserved;      /* 0 */
} bh_kernel_info;

/* Has the stream's worker validate and compile the kernel, in order with its submissions; the
 * event tells how that went (INVALID_KERNEL, COMPILE_FAILED, WORKER_SIGNAL, DEADLINE, …). Not
 * needed before a submission: the first one that uses a kernel does it. Never blocks. Returns what
 * bh_submit returns. */
BH_API BH_MUST_USE bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream,
                                               bh_event **out_event, bh_detail *detail);
/* Prepares the kernel and tells what it binds. Blocks, |timeout_ns| at most; when that passes the
 * compile goes on, bounded by the stream's compile deadline (use bh_kernel_prepare to wait in
 * parts, or to cancel). Returns BH_OK, BH_TIMEOUT, BH_NO_MEMORY, or the verdict's code with its
 * message in |detail|. What the first such call is told is what BH_ACCESS_DECLARED stands for with
 * this kernel, on every stream: so call it on a stream whose worker is to be believed, one that has
 * not run what others have written. */
BH_INLINE BH_MUST_USE bh_status bh_kernel_reflect(bh_kernel *kernel, bh_stream *stream,
                                                  uint64_t timeout_ns, bh_kernel_info *out_info,
                                                  bh_detail *detail) {
    return bh_kernel_reflect_sized(kernel, stream, timeout_ns, out_info, sizeof *out_info, detail);
}

/* -- submissions ---------------------------------------------------------------------------- */

/* |offset| and |size| give a range of the buffer; size BH_WHOLE_SIZE is the rest of it. |access|
 * is what the command may do: BH_WRITE promises that the command overwrites the range.
 * BH_ACCESS_DECLARED is what the kernel's module declares, as bh_kernel_reflect has told (before:
 * INVALID_ARGUMENT); a module's writeonly does not promise to overwrite anything. It may be less
 * than the kernel declares: a kernel that is seen to store into what it was given to read is
 * BINDING_MISMATCH, and one that stores unseen does not get through, since a worker cannot change
 * what the submissions that it was given only read (it dies of SIGSEGV, or writes into a copy,
 * WORKER_SIGNAL or READY); the bytes stay as they are. |offset| has to be a multiple of what the
 * device says (bh_device_info: storage_alignment, uniform_alignment), or it is BINDING_MISMATCH.
 * Dependencies and poison are of whole buffers (B5): two streams cannot write disjoint halves of
 * one at the same time, and a submission that ends poisoned poisons every buffer it was to write,
 * whole, also when it never ran. One command (or write by the host) that covers all of a buffer
 * without reading it cleans it; two halves do not: each is READY, and the buffer stays poisoned. A
 * BH_WRITE that is not kept makes garbage CLEAN; on a binding that the module declares readonly it
 * is BINDING_MISMATCH. Ranges of one buffer may overlap in a command: what it reads of what it
 * writes is the kernel's affair. size 0 is for an empty buffer only, and BH_WHOLE_SIZE needs
 * something left behind |offset|. */
typedef struct bh_binding {
    uint32_t set, binding;
    bh_buffer *buffer;
    uint64_t offset, size;
    bh_access access;
    uint32_t element; /* of an array of buffers (bh_kernel_binding.count), each of which is bound by
                         a bh_binding of its own; one that is missing is BINDING_MISMATCH. Else 0 */
} bh_binding;

typedef enum bh_command_type {
    BH_COMMAND_DISPATCH = 1,
    BH_COMMAND_COPY = 2, /* src to dst; ranges of one buffer must not overlap; size BH_WHOLE_SIZE is
                            the rest of src */
    BH_COMMAND_FILL = 3, /* dst with the 32-bit word fill_value; offset and size multiples of 4;
                            size BH_WHOLE_SIZE is the rest of dst */
} bh_command_type;

typedef struct bh_command {
    bh_command_type type;
    /* dispatch */
    bh_kernel *kernel;
    uint32_t groups[3]; /* workgroups, each at least 1; a product over 2^32 - 1 is LIMIT_EXCEEDED
                           where the device has not the feature wholeGrids */
    const bh_binding *bindings;
    uint32_t binding_count; /* at most 256, each element of an array is one */
    const void *push;       /* copied */
    uint32_t push_size;     /* a multiple of 4, at most 4096 (the device's limit is smaller) */
    /* copy, fill */
    bh_buffer *src, *dst;
    uint64_t src_offset, dst_offset, size;
    uint32_t fill_value;
} bh_command;

typedef struct bh_submit_info {
    const bh_command *commands; /* run in order; with barriers where they depend on each other */
    uint32_t command_count;     /* at least 1 */
    bh_event *const *waits;     /* it starts when all are READY; one poisoned poisons it (E5) */
    uint32_t wait_count;
    uint64_t deadline_ns; /* from its turn on the worker; 0: the stream's; BH_FOREVER: none */
    bool alone; /* it runs on a worker that has run no other, and nothing else is given to that
                   worker meanwhile: what it ends with is its own doing (bh_verdict.blame). Where
                   the stream's worker has run something it is replaced first, once what is before
                   it has ended. After a SUSPECTED verdict; for all: bh_stream_options.isolation */
} bh_submit_info;

/* Queues a submission, the unit of failure (E4). It depends on the events it waits for and on
 * whoever writes the buffers it reads, on any stream of the context; it also runs after earlier
 * users of the buffers it writes. Never blocks, and never returns another submission's error (E8).
 * |out_event| may be NULL (fire and forget). It is written last, NULL where the call fails, and may
 * be an element of |info->waits|. Everything is copied or retained. There are no cycles: the event
 * does not exist before the call, so nothing that it waits for can wait for it.
 * Returns BH_OK, BH_INVALID_ARGUMENT (the detail names command and field), BH_TOO_LARGE (encoded,
 * over 512 KiB), BH_NO_MEMORY, BH_CLOSED. A worker's death: see bh_event_wait. */
BH_INLINE BH_MUST_USE bh_status bh_submit(bh_stream *stream, const bh_submit_info *info,
                                          bh_event **out_event, bh_detail *detail) {
    return bh_submit_sized(stream, info, sizeof *info, sizeof(bh_command), sizeof(bh_binding),
                           out_event, detail);
}
/* One dispatch, no waits, the stream's deadline. */
BH_INLINE BH_MUST_USE bh_status bh_launch(bh_stream *stream, bh_kernel *kernel,
                                          const uint32_t groups[3], const bh_binding *bindings,
                                          uint32_t binding_count, const void *push,
                                          uint32_t push_size, bh_event **out_event,
                                          bh_detail *detail) {
    return bh_launch_sized(stream, kernel, groups, bindings, binding_count, sizeof *bindings, push,
                           push_size, out_event, detail);
}

/* -- events --------------------------------------------------------------------------------- */

typedef enum bh_event_state { BH_EVENT_PENDING, BH_EVENT_READY, BH_EVENT_POISONED } bh_event_state;

typedef enum bh_executed {
    BH_EXECUTED_NO,      /* it never started: no side effects */
    BH_EXECUTED_UNKNOWN, /* it was running when it ended */
    BH_EXECUTED_YES,     /* it ran to its end */
} bh_executed;

/* What a verdict proves (T2). From its first kernel on a worker may have been taken over: how it
 * dies, and what it says of later submissions, may be the earlier one's doing. */
typedef enum bh_blame {
    BH_BLAME_NONE,      /* READY, or it was nothing that the submission or its worker did */
    BH_BLAME_SUSPECTED, /* its worker had been given another kernel (a loader: another file): that
                           one may have done it. Submit it again with bh_submit_info.alone */
    BH_BLAME_CERTAIN,   /* its worker had been given nothing else */
} bh_blame;

/* What became of a submission. Final (E1). In a dependent (hops is not 0) |executed|, |event|,
 * |stream_name|, the times and |other_causes| are its own, |message| tells both stories, and the
 * rest is the origin's: signal, worker_pid, kernel_name, command_index, … (but |status| where it is
 * BH_STREAM_FAILED). */
typedef struct bh_verdict {
    bh_status status; /* BH_OK: READY; any other: poisoned. Under 32: it never reached a worker */
    bh_executed executed;
    int32_t signal;        /* that killed the worker; 0: none (also of CONTEXT_CLOSED) */
    int32_t exit_code;     /* of the worker; -1: it did not exit */
    int32_t vk_result;     /* VkResult; 0: none */
    int32_t sys_errno;     /* 0: none */
    uint64_t event;        /* this event's id */
    uint64_t origin;       /* id of the event where the poison began; itself if it is the culprit */
    uint32_t hops;         /* how many dependencies lie between; 0: itself */
    uint32_t other_causes; /* further origins among what it depends on, known when it ended (E7) */
    uint32_t command_index; /* in its submission; BH_NO_COMMAND: not known */
    int32_t worker_pid;     /* of the origin; 0: it never reached a worker */
    uint64_t limit;         /* the limit that was hit: deadline in ns, or memory in bytes; 0 */
    /* CLOCK_MONOTONIC. started_ns is when its turn came on the worker, 0: never. Checks and
     * compiling count: what was refused there has one, and |executed| says no. */
    uint64_t submitted_ns, started_ns, ended_ns;
    char kernel_name[64]; /* of that command (a dependent: the origin's); empty: none */
    uint8_t kernel_hash[32];
    char stream_name[64];
    char message[512]; /* one paragraph for a person */
    bh_blame blame;    /* whether |status| is the submission's own fault for certain */
} bh_verdict;

/* Who has to act (bh_status_classify of its status), except that what was only reached by poison
 * from elsewhere, hops not 0, is a VICTIM of it: the same submission may do well next time. */
BH_INLINE bh_status_class bh_verdict_classify(const bh_verdict *verdict) {
    return bh_verdict_classify_sized(verdict, sizeof *verdict);
}

/* Waits until |event| is READY or POISONED, or |timeout_ns| passes. Returns BH_OK, BH_TIMEOUT
 * (nothing changed), or the verdict's code; the same answer every time, to every thread (E2). When
 * its worker dies, the wait ends within a few milliseconds (E9). Blocks. */
BH_API BH_MUST_USE bh_status bh_event_wait(bh_event *event, uint64_t timeout_ns);
/* Waits until one of |events| has ended; *out_index is then the first in the array that has. One
 * event may be named several times, and they may belong to several contexts; none at all, or a NULL
 * among them, is BH_INVALID_ARGUMENT. Returns BH_OK whatever became of it (bh_event_wait(…, 0)
 * tells), BH_TIMEOUT (nothing changed; *out_index is |count|), or BH_NO_MEMORY. Costs one look at
 * each event, not one for each that ends. Blocks. Takes no reference. */
BH_API BH_MUST_USE bh_status bh_event_wait_any(bh_event *const *events, size_t count,
                                               uint64_t timeout_ns, size_t *out_index);
/* Waits until all of |events| have ended, well or badly: no early return at the first that is
 * poisoned. Duplicates and several contexts are fine, and no event at all is BH_OK. Returns
 *   BH_OK                all are READY; *out_index is |count|
 *   a verdict's code     all have ended; *out_index is the first in the array that is POISONED
 *   BH_TIMEOUT           nothing changed; *out_index is the first in the array that is pending
 *   BH_INVALID_ARGUMENT  a NULL among them; *out_index is |count|
 * |out_index| may be NULL. Blocks. Takes no reference. */
BH_API BH_MUST_USE bh_status bh_event_wait_all(bh_event *const *events, size_t count,
                                               uint64_t timeout_ns, size_t *out_index);
/* Gives a descriptor that becomes readable (poll, epoll, select, libuv) when |event| has ended, not
 * before, and stays so: there is no need to read it. An eventfd, close-on-exec, non-blocking, the
 * caller's to close, before the end if it likes. Each call gives another one, readable from the
 * start when the event has ended. It keeps neither event nor context alive, and works after both
 * are released. bh_context_destroy ends the event and so makes it readable; a forked child that
 * inherits it sees the same. While the event is pending the library has a second descriptor of it.
 * Returns BH_OK, BH_NO_MEMORY, or BH_SYSTEM (EMFILE, ENFILE: out of descriptors); *out_fd is -1
 * then. Does not block. */
BH_API BH_MUST_USE bh_status bh_event_fd(bh_event *event, int *out_fd, bh_detail *detail);

/* |event| has ended: bh_event_query says so. It is valid during the call, whatever was released. */
typedef void (*bh_event_callback)(bh_event *event, void *user);
/* Has |callback| called when |event| has ended: exactly once for each registration that returned
 * BH_OK, and before bh_context_destroy returns. There is no way to take it back: cancel the event.
 *   Where: in one thread of the context's own, made at the first registration, with all signals
 *   blocked; never inside this or any other call, never with a lock of the library held.
 *   When: in the order in which the events ended, those of one event in the order of registration.
 *   For an event that has ended already it is due at once, after those that are due already.
 *   What it may do: everything that does not wait: submit, register, cancel, query, release, and
 *   waits that need not wait (events that have ended, a timeout of 0). A call that would have to
 *   wait answers BH_IN_CALLBACK; bh_kernel_reflect, bh_devices, bh_doctor and bh_context_destroy
 *   always do. One that takes long delays the callbacks after it, and nothing else.
 * Returns BH_OK, BH_NO_MEMORY, BH_SYSTEM (no thread), or BH_CLOSED once bh_context_destroy has been
 * called. Does not block. */
BH_API BH_MUST_USE bh_status bh_event_on_end(bh_event *event, bh_event_callback callback,
                                             void *user, bh_detail *detail);
/* Looks, and does not wait. NULL, or one that the caller has released: POISONED, so that no loop
 * waits for it for ever. */
BH_API bh_event_state bh_event_query(bh_event *event);
/* BH_PENDING, or BH_OK with *out_verdict filled in (also for a READY event). */
BH_INLINE BH_MUST_USE bh_status bh_event_verdict(bh_event *event, bh_verdict *out_verdict) {
    return bh_event_verdict_sized(event, out_verdict, sizeof *out_verdict);
}
/* Asks for the end of a submission: queued, it never runs (executed no); running, it is ended as at
 * its deadline (executed unknown): its worker goes on, or is killed. It ends CANCELLED, unless it
 * ended otherwise first. Does not block: wait for the event. Returns BH_OK, also for an event that
 * has ended. */
BH_API BH_MUST_USE bh_status bh_event_cancel(bh_event *event);
BH_API uint64_t bh_event_id(const bh_event *event); /* unique in its context */
BH_API bh_status bh_event_retain(bh_event *event);
BH_API bh_status bh_event_release(bh_event *event);

/* -- what this machine can do --------------------------------------------------------------- */

typedef struct bh_device_info {
    char selector[48]; /* for bh_stream_options.device */
    char name[256];
    char driver[256];
    char driver_info[256];
    uint32_t vendor_id, device_id, device_type; /* VkPhysicalDeviceProperties */
    uint32_t api_version, driver_version;
    uint8_t uuid[16];
    uint64_t memory_bytes; /* largest device-local heap */
    uint32_t max_groups[3];
    uint32_t max_group_invocations;
    uint32_t max_shared_bytes;
    uint32_t max_push_bytes;
    uint64_t max_storage_range, max_uniform_range;
    uint32_t storage_alignment, uniform_alignment;
    uint64_t import_alignment;
    uint32_t feature_count;
    const char *features[64]; /* constant strings: the features that the device has and we use */
} bh_device_info;

/* The devices of every supported driver here, as a worker sees them. Starts and retires workers;
 * blocks, 30 s at most a driver. At most |capacity| are written; *out_count is how many there are.
 * Returns BH_OK or why there are none: BH_NO_DEVICE, BH_UNAVAILABLE, BH_SYSTEM. */
BH_INLINE BH_MUST_USE bh_status bh_devices(bh_context *context, bh_device_info *out_devices,
                                           size_t capacity, size_t *out_count, bh_detail *detail) {
    return bh_devices_sized(context, out_devices, capacity, sizeof *out_devices, out_count, detail);
}

typedef enum bh_check_result {
    BH_CHECK_ABSENT, /* this machine does not have it */
    BH_CHECK_HOLDS,  /* proven by a probe */
    BH_CHECK_BROKEN, /* applied, but the probe got through */
} bh_check_result;

typedef struct bh_check {
    char group[16]; /* "kernel", "sandbox", "driver" */
    char name[48];
    bool required;
    bh_check_result result;
    char text[256];    /* what was tried and seen */
    char advice[256];  /* what to install or enable; empty where it holds */
    uint64_t reserved; /* 0 */
} bh_check;

/* Probes each sandbox layer, kernel feature and driver guarantee. Blocks, 30 s at most a driver.
 * Returns BH_OK when it could look, whatever it saw. */
BH_INLINE BH_MUST_USE bh_status bh_doctor(bh_context *context, bh_check *out_checks,
                                          size_t capacity, size_t *out_count, bh_detail *detail) {
    return bh_doctor_sized(context, out_checks, capacity, sizeof *out_checks, out_count, detail);
}

#include <bulkhead/kernel_stats.h>
#include <bulkhead/quarantine.h>

#ifdef __cplusplus
}
#endif

#include <bulkhead/glsl.h>
#include <bulkhead/inspect.h>
#include <bulkhead/template.h>
#include <bulkhead/trace.h>

#endif
