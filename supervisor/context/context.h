/* The context: one lock over all that streams, workers and events share, a reactor thread, and
 * the things that a lock holder leaves to be freed once the lock is dropped.
 *
 * The lock is held for bookkeeping only: never across a blocking call, a callback, or the freeing
 * of a mapping. So a healthy stream is not slowed by another's failure (E16).
 */
#ifndef BHI_SUPERVISOR_CONTEXT_CONTEXT_H
#define BHI_SUPERVISOR_CONTEXT_CONTEXT_H

#include "base/list.h"
#include "base/map.h"
#include "core/core.h"
#include "core/handle.h"
#include "core/stats.h"
#include "supervisor/context/chaos.h"
#include "supervisor/context/poller.h"
#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdatomic.h>

struct bh_buffer;
struct bh_stream;
struct bhi_cache_queue;
struct bhi_compilations;
struct bhi_death_records;
struct bhi_kernel_table;
struct bhi_opener;
struct bhi_pipeline_cache;
struct bhi_pool;
struct bhi_reactor;
struct bhi_usages;

struct bhi_context_settings {
    char *worker_path, *warden_path; /* the two programs (launch.h) */
    const char *worker_remedy;       /* what to do if worker_path is no worker */
    char *runtime_parent;            /* private folders are made in it, one for each zygote */
    uint32_t spares;
    uint32_t spare_kernels; /* that a spare learns, at most; 0: none */
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

/* supervisor/stream/tenant.h */
struct bhi_tenants {
    struct bhi_map names; /* bhi_tenant.chain */
    struct bhi_list busy; /* bhi_tenant.link: they have streams */
    struct bhi_list idle; /* the same; those that have had none for the longest time first */
    uint32_t idle_count;
};

/* What bh_context_stats reports that is not counted elsewhere. */
struct bhi_counts {
    uint64_t workers; /* that were started */
    uint64_t deaths[BH_STATUSES];
    uint64_t zygotes_lost;
    uint64_t load_bytes;      /* of loads that have not ended */
    struct bhi_stats loaders; /* those that are gone */
    struct bhi_stats tenants; /* those that were forgotten */
};

struct bh_context {
    struct bhi_handle handle;          /* dead once it is destroyed */
    _Atomic uint32_t refs;             /* the owner's and one for each object */
    void (*free)(bh_context *context); /* after the last of them (context_create.c) */
    _Atomic uint32_t *fork_guard;
    struct bhi_context_settings settings;
    struct bhi_poller poller;

    pthread_mutex_t lock; /* guards all below, and the fields that say "lock" elsewhere */
    struct bhi_core core; /* the submissions and their results */
    bool closed;
    uint64_t device_memory_limit, device_memory; /* of all buffers in device memory (D6) */
    uint64_t next_id;                            /* of events, buffers, kernels, workers */
    struct bhi_list streams;                     /* bh_stream.link */
    struct bhi_list workers;                     /* bhi_worker.link: not yet reaped */
    struct bhi_list zygotes;                     /* bhi_zygote.link */
    struct bhi_tenants tenants;
    struct bhi_counts counts;
    struct bhi_chaos chaos;
    struct bhi_list places;  /* of the default driver (supervisor/stream/placement.h) */
    struct bhi_list doomed;  /* bhi_doomed.link: freed by bhi_context_settle_unlock */
    struct bhi_list loaders; /* bh_stream.loader: referenced; also in |streams| (loaders.h) */
    uint32_t stream_serial;  /* for default names */
    uint64_t spare_at_ns;    /* reactor thread: no spare is started before */
    uint64_t way_until_ns;   /* lock: no spare is started before: a stream goes on (spares.h) */
    uint64_t exchange_at_ns; /* reactor thread: no spare is given up for another before */
    bool spares_due;         /* lock: spares may have more to learn, or tenants may have changed */
    bool has_had_zygote;     /* lock: one was READY, so the worker executable is one */
    uint32_t mute_starts;    /* lock: zygotes in a row that ended without a message */
    bool leftovers_removed;  /* reactor thread: leftovers of dead processes were removed */
    bool wake_reactor;       /* bhi_context_settle_unlock must wake it */
    _Atomic uint32_t waking; /* threads about to wake it; incremented under the lock */
    struct bhi_list pending; /* bh_event.pending_link: in the order of submission */
    struct bh_event *inherited_failure; /* referenced: the earliest of streams that are gone */
    char refusal[512];                  /* the message of the submission that is being refused */
    struct bhi_list lines;              /* bhi_line.link: for the log */
    uint32_t line_count;

    /* State of the supervisor's other parts; each says what guards it. */
    struct bhi_compilations *compilations;
    struct bhi_pool *pool;        /* memory of buffers that are gone */
    struct bhi_pool *device_pool; /* the same in the memory of GPUs */
    struct bhi_list replicas;     /* lock: bhi_replica.link (supervisor/buffer/replica.h) */
    /* Drops the replicas of |of| for |stream|; NULL: of all, for all. Lock held. */
    void (*drop_replicas)(bh_context *context, const struct bh_buffer *of,
                          const struct bh_stream *stream);
    struct bhi_kernel_table *kernels;
    struct bhi_death_records *death_records;
    struct bhi_usages *usages;           /* lock: what its tenants use most */
    struct bhi_cache_queue *cache_queue; /* for |pipeline_cache| */
    struct bhi_pipeline_cache *pipeline_cache;
    struct bhi_reactor *reactor;

    atomic_bool opener_answered; /* an opener has: the executable is a worker */
    pthread_mutex_t opener_lock; /* guards what follows; no other lock is taken under it */
    struct bhi_opener *opener;   /* NULL: none is needed yet, or the last one was lost */
    bool opener_given_up;        /* no other is started */
};

/* Something to be freed outside the lock. */
struct bhi_doomed {
    struct bhi_list link;
    void (*free)(struct bhi_doomed *doomed);
};

/* The context's own fields. bhi_context_init returns false if out of memory; then call no fini. */
bool bhi_context_init(bh_context *context, const struct bhi_core_ops *ops);
void bhi_context_fini(bh_context *context);

/* A page that a forked child sees as zeros (MADV_WIPEONFORK). So a call notices a fork without
 * getpid() or pthread_atfork(). NULL: out of memory. */
_Atomic uint32_t *bhi_fork_guard_make(void);
bool bhi_fork_guard_forked(const _Atomic uint32_t *guard);
void bhi_fork_guard_free(_Atomic uint32_t *guard);

/* Returns BH_OK, BH_FORKED or BH_CLOSED. |call| is the public function, for the detail. */
bh_status bhi_context_check(const bh_context *context, const char *call, bh_detail *detail);
bool bhi_context_forked(const bh_context *context);
bh_status bhi_context_check_fork(const bh_context *context, const char *call, bh_detail *detail);
void bhi_context_lock(bh_context *context);
/* Only if the holder has changed nothing that concerns the core, the reactor or another thread. */
void bhi_context_unlock(bh_context *context);
/* Unlocks, then wakes the reactor and frees what was doomed, if the holder has asked for it. */
void bhi_context_settle_unlock(bh_context *context);
/* The same after a change of the core: first runs bhi_core_pump, which introduces kernels and buffers
 * to workers, fills their lanes and ends what cannot run (pump.c). */
void bhi_context_pump_unlock(bh_context *context);
void bhi_context_doom(bh_context *context, struct bhi_doomed *doomed); /* lock held */
/* A caller drops a reference to an object of |context|; nothing happens if it has none, or in the
 * child of a fork. Returns true if it was the caller's last one: drop the library's reference that
 * stands for them, too. */
bool bhi_context_drop(struct bhi_handle *handle, const bh_context *context);
void bhi_context_retain(bh_context *context);
void bhi_context_unref(bh_context *context);
uint64_t bhi_context_new_id(bh_context *context); /* lock held */
/* Adds a line that the reactor thread will log soon. Lock held. */
void bhi_context_say(bh_context *context, bh_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Logs the lines of bhi_context_say. Reactor thread, or after that has ended. */
void bhi_context_log_said(bh_context *context);
/* Logs a line now. Reactor thread, without the lock. */
void bhi_context_log(bh_context *context, bh_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns true if the calling thread is inside a call of the host's log callback; then it must not
 * sleep. */
bool bhi_in_callback(void);
/* Returns BH_IN_CALLBACK in that case, otherwise BH_OK. */
bh_status bhi_callback_check(const char *what, bh_detail *detail);

#endif
