/* The context: one lock over all that streams, workers and events share, a reactor thread, and
 * the things that a lock holder leaves to be freed once the lock is dropped.
 *
 * The lock is held for bookkeeping only: never across a blocking call, a callback, or the freeing
 * of a mapping. So a healthy stream is not slowed by another's failure (E16).
 */
#ifndef BHI_SUPERVISOR_CONTEXT_CONTEXT_H
#define BHI_SUPERVISOR_CONTEXT_CONTEXT_H

#include "base/list.h"
#include "core/core.h"
#include "core/handle.h"
#include "supervisor/context/poller.h"
#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdatomic.h>

struct bh_buffer;
struct bh_stream;
struct bhi_callbacks;
struct bhi_death_records;
struct bhi_kernel_table;
struct bhi_opener;
struct bhi_pipeline_cache;
struct bhi_pool;
struct bhi_reactor;

struct bhi_context_settings {
    char *worker_path;
    const char *worker_remedy; /* what to do if that is no worker (bhi_spawn_paths) */
    char *runtime_parent;      /* private folders are made in it, one for each zygote */
    uint32_t spares;
    uint32_t restart_budget;
    uint64_t restart_window_ns;
    uint64_t start_timeout_ns;
    uint64_t worker_idle_ns; /* 0: a stream has a worker all the time */
    uint32_t kernel_limit;   /* how many kernels a worker knows, and bytes of their code */
    uint64_t kernel_limit_bytes;
    bh_log_callback log;
    void *log_user;
};

#define BHI_TENANT 64u /* bytes of its name, NUL included */

struct bh_context {
    struct bhi_handle handle;          /* dead once it is destroyed */
    _Atomic uint32_t refs;             /* the owner's and one for each object */
    void (*free)(bh_context *context); /* after the last of them (context_create.c) */
    /* One page, wiped in a forked child: reads 0 there, and the child is refused. */
    _Atomic uint32_t *fork_guard;
    struct bhi_context_settings settings;
    bool may_spin; /* waiters may spin before they sleep */
    struct bhi_poller poller;

    pthread_mutex_t lock; /* guards all below, and the fields that say "lock" elsewhere */
    struct bhi_core core; /* what was submitted, and what becomes of it */
    bool closed;
    uint64_t device_memory_limit, device_memory; /* of all buffers in device memory (D6) */
    uint64_t next_id;                            /* of events, buffers, kernels, workers */
    struct bhi_list streams;                     /* bh_stream.link */
    struct bhi_list workers;                     /* bhi_worker.link: not yet reaped */
    struct bhi_list zygotes;                     /* bhi_zygote.link */
    struct bhi_list tenants;                     /* that are charged (supervisor/stream/tenant.h) */
    struct bhi_list places;  /* of the default driver (supervisor/stream/placement.h) */
    struct bhi_list doomed;  /* bhi_doomed.link: freed by bhi_context_settle_unlock */
    struct bhi_list loaders; /* bh_stream.loader: referenced; also in |streams| (loaders.h) */
    uint32_t stream_serial;  /* for default names */
    uint64_t spare_at_ns;    /* reactor thread: no spare is started before */
    bool has_had_zygote;     /* lock: one was READY, so the worker executable is one */
    uint32_t mute_starts;    /* lock: zygotes in a row that ended without a word */
    bool leftovers_removed;  /* reactor thread: what the dead left has been removed */
    bool wake_reactor;       /* bhi_context_settle_unlock does it */
    _Atomic uint32_t waking; /* threads on their way to wake it; counted up: lock */
    struct bhi_list pending; /* bh_event.pending_link: in the order of submission */
    struct bh_event *inherited_failure; /* referenced: the earliest of streams that are gone */
    char refusal[512];                  /* the message of the submission that is being refused */
    struct bhi_list lines;              /* bhi_line.link: for the log */
    uint32_t line_count;

    /* What the rooms above have of each context; each says what guards it. */
    struct bhi_callbacks *callbacks;
    struct bhi_pool *pool;    /* memory of buffers that are gone */
    struct bhi_list replicas; /* lock: bhi_replica.link (supervisor/buffer/replica.h) */
    /* Drops those of |of| that are |stream|'s; NULL stands for all. Lock held. */
    void (*drop_replicas)(bh_context *context, const struct bh_buffer *of,
                          const struct bh_stream *stream);
    struct bhi_kernel_table *kernels;
    struct bhi_death_records *death_records;
    struct bhi_pipeline_cache *pipeline_cache;
    struct bhi_reactor *reactor;

    atomic_bool opener_answered; /* by an opener, so the executable is a worker's */
    pthread_mutex_t opener_lock; /* guards what follows; no other lock is taken under it */
    struct bhi_opener *opener;   /* NULL: none is needed yet, or the last one was lost */
    bool opener_given_up;        /* no other is started */
};

/* Something to be freed outside the lock. */
struct bhi_doomed {
    struct bhi_list link;
    void (*free)(struct bhi_doomed *doomed);
};

/* The context's own part. bhi_context_init: false: out of memory, and nothing is left to fini. */
bool bhi_context_init(bh_context *context, const struct bhi_core_ops *ops);
void bhi_context_fini(bh_context *context);

/* BH_OK, BH_FORKED or BH_CLOSED. |call| is who asks, for the detail. */
bh_status bhi_context_check(const bh_context *context, const char *call, bh_detail *detail);
bool bhi_context_forked(const bh_context *context);
bh_status bhi_context_refuse(const char *call, bh_detail *detail); /* BH_FORKED, and why */
void bhi_context_lock(bh_context *context);
/* Where the holder has changed nothing that the core, the reactor or another thread must hear of.
 */
void bhi_context_unlock(bh_context *context);
/* Unlocks, then wakes the reactor and frees what was doomed, where the holder has asked for that.
 * It has changed nothing that the core must hear of: else bhi_context_pump_unlock (pump.h). */
void bhi_context_settle_unlock(bh_context *context);
void bhi_context_doom(bh_context *context, struct bhi_doomed *doomed); /* lock held */
/* A caller drops a reference to an object of |context|. *out_last: it was the caller's last one,
 * and the library's reference that stands for them is to be dropped as well. */
bh_status bhi_context_release(struct bhi_handle *handle, const bh_context *context, bool *out_last);
void bhi_context_retain(bh_context *context);
void bhi_context_unref(bh_context *context);
uint64_t bhi_context_new_id(bh_context *context); /* lock held */
/* Has the reactor thread log a line, soon. Lock held. */
void bhi_context_say(bh_context *context, bh_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Logs what has been said. The reactor thread, or when there is none any more. */
void bhi_context_log_said(bh_context *context);
/* From the reactor thread only, without the lock. */
void bhi_context_log(bh_context *context, bh_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Around a call into the host from a thread of the context's own: a completion callback, or the
 * log.
 */
void bhi_callback_enter(const bh_context *context);
void bhi_callback_leave(void);
/* Is the calling thread inside one? Then it must not sleep. */
bool bhi_in_callback(void);
/* BH_IN_CALLBACK if it is, otherwise BH_OK. */
bh_status bhi_callback_check(const char *what, bh_detail *detail);

#endif
