/* A worker process as the supervisor sees it.
 *
 *   SPAWNING ──▶ HELD ──▶ RUNNING ──▶ DEAD
 *       │          │                    ▲      spawned  hello+token  ready + /proc checked
 *       └──────────┴────────────────────┘
 *
 * RUNNING without a stream is a spare. A kill does not change the state: what the worker completed
 * before it is confirmed dead still counts (E11). Nothing is reused: a new worker is a new object,
 * so a late word of a dead one has nowhere to go (E12).
 */
#ifndef BHI_SUPERVISOR_WORKER_WORKER_PROC_H
#define BHI_SUPERVISOR_WORKER_WORKER_PROC_H

#include "base/futex.h"
#include "base/idset.h"
#include "base/list.h"
#include "core/worker.h"
#include "ipc/channel.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "ipc/wire.h"
#include "supervisor/context/context.h"
#include "supervisor/context/request.h"
#include "supervisor/context/room.h"
#include "supervisor/stream.h"
#include "supervisor/worker/address_space.h"
#include "supervisor/worker/conduct.h"
#include "supervisor/worker/kernels.h"

struct bhi_zygote;

enum bhi_worker_state { BHI_SPAWNING, BHI_HELD, BHI_RUNNING, BHI_DEAD };

enum bhi_source_kind {
    BHI_SOURCE_WAKE,
    BHI_SOURCE_WORKER_PIDFD,
    BHI_SOURCE_WORKER_DOORBELL,
    BHI_SOURCE_WORKER_CHANNEL,
    BHI_SOURCE_ZYGOTE_SOCKET,
    BHI_SOURCE_ZYGOTE_PIDFD,
    BHI_SOURCE_WARDEN_PIDFD,
};

/* What epoll gives back. */
struct bhi_control_source {
    enum bhi_source_kind kind;
    void *object;
};

/* A control message on its way to a worker. */
struct bhi_outgoing {
    struct bhi_list link;
    struct bhi_message message;
    int fd; /* owned; -1: none */
    bool fd_sent;
};

/* What a worker said of a kernel that it has compiled. */
struct bhi_reflection {
    struct bhi_list link;
    uint64_t kernel;
    struct bh_kernel_info info;
};

struct bhi_worker {
    struct bhi_core_worker core; /* lock: its lane, its stream, why it was killed */
    _Atomic uint32_t refs;
    bh_context *context;
    struct bhi_zygote *zygote; /* referenced */
    uint64_t id;
    char device[48];
    uint32_t device_index;
    uint64_t memory_limit;
    enum bhi_worker_kind kind;
    struct bhi_spin stream_spin; /* of host threads on progress.completed_word */

    /* Reactor thread only. */
    struct bhi_channel channel;
    bool channel_more; /* messages are left: look again without waiting */
    bool ready_said;
    uint64_t layers; /* that it says hold, in its `ready` */
    int fdpass;
    int doorbell;
    struct bhi_room_held room; /* while it starts: for its pidfd, and for looks at /proc */
    uint8_t token[BHI_TOKEN_BYTES];
    struct bhi_control_source pidfd_source, doorbell_source, channel_source;
    struct bhi_conduct conduct;
    struct bhi_reflection *reflecting; /* bindings are coming */
    uint64_t passing_over;             /* kernel whose bindings there is no memory for; 0: none */

    /* Lock. */
    struct bhi_list link; /* context->workers */
    enum bhi_worker_state state;
    struct bhi_lane lane;
    struct bhi_progress_view progress;
    struct bhi_worker_cache cache;
    bool device_lost;      /* it said so: it is about to end */
    bool recheck;          /* the reactor shall harvest */
    uint64_t refused_seen; /* progress.refused_allocations at the last harvest */
    struct bhi_address_space space;
    struct bhi_idset buffers;   /* attached: buffers without a block, and blocks (pool.h) */
    struct bhi_idset written;   /* of them, those that it may write */
    struct bhi_idset constants; /* of them, those whose content it may rely on */
    struct bhi_pool_user pool;
    struct bhi_worker_kernels kernels; /* created */
    struct bhi_idset files;            /* attached */
    struct bhi_list outbox;            /* bhi_outgoing.link */
    uint32_t control_sent;             /* queued so far, modulo 2^32 */
    int pidfd;
    bool exit_known;
    int exit_code_kind, exit_status; /* si_code, si_status */
    uint64_t start_deadline_ns;
    uint64_t reap_deadline_ns; /* the pidfd fired; the exit status is due by then */
    uint64_t killed_ns;        /* SIGKILL was sent first; 0: it was not */
    bool undead;               /* given up: not even that ended it */
    uint64_t hung_up_ns; /* it had closed a socket then: its end is due soon after; 0: it has not */
    struct bhi_msg_device *devices;
    uint32_t device_count;
    struct bhi_list reflections; /* bhi_reflection.link */
    bool reflection_lost;        /* there was no memory for one of them */
};

/* Sends a spawn request; the worker is in context->workers then. Reactor, no lock. NULL with
 * |detail| on failure. */
struct bhi_worker *bhi_worker_spawn(bh_context *context, struct bhi_zygote *zygote,
                                    const char *device, uint32_t device_index,
                                    uint64_t memory_limit, enum bhi_worker_kind kind,
                                    bh_detail *detail);
void bhi_worker_retain(struct bhi_worker *worker);
void bhi_worker_release(struct bhi_worker *worker); /* NULL is fine */

/* -- lock held from here on ------------------------------------------------------------------- */

/* Writes |submission| into its lane as number |seq|; a port of the core. */
enum bhi_publish bhi_worker_publish(struct bhi_worker *worker, struct bhi_request *request,
                                    uint64_t seq);
/* Takes in what the worker has completed. Any thread; not while a submission ends. */
void bhi_worker_harvest(struct bhi_worker *worker);
/* It serves |stream| from now on, and is named after it. */
void bhi_worker_serve(struct bhi_worker *worker, const char *stream);
/* A submission in flight needs the reactor's notice. */
void bhi_worker_notify(struct bhi_worker *worker);
/* Gives it its pipeline cache, |area| of |room| bytes. False: that cannot be. */
bool bhi_worker_attach_cache(struct bhi_worker *worker, int area, uint64_t room);
/* How much of its address space |buffer| takes where it is attached. */
uint64_t bhi_worker_attached_bytes(const struct bh_buffer *buffer);
void bhi_worker_forget_buffer(struct bhi_worker *worker, uint64_t id, uint64_t bytes);
void bhi_worker_forget_file(struct bhi_worker *worker, uint64_t id);
/* False: it did not know it, or there is no memory to tell it. */
bool bhi_worker_forget_kernel(struct bhi_worker *worker, uint64_t id);
struct bhi_reflection *bhi_worker_reflection(struct bhi_worker *worker, uint64_t kernel);
/* A line for the host's log. */
struct bhi_obituary {
    int level;
    char line[640]; /* empty: it died as it was told */
};

/* It is confirmed dead: says how, has the core judge what it owed (obituary.c), leaves the
 * context. The caller drops the context's reference. */
void bhi_worker_died(struct bhi_worker *worker, struct bhi_obituary *obituary);
/* What it says of where it is. */
struct bhi_progress_snapshot bhi_worker_progress_snapshot(const struct bhi_worker *worker);
/* It says that it compiles what it has run: that is a lie (T6). */
bool bhi_worker_pretends(const struct bhi_worker *worker,
                         const struct bhi_progress_snapshot *snapshot);
#define BHI_PRETENDED "it says that it compiles what it has run"
/* When its oldest submission is over its deadline, at the earliest; BHI_FOREVER. Has that ended,
 * or kills it, when that is now. */
uint64_t bhi_worker_check_deadline(struct bhi_worker *worker, uint64_t now_ns);

static inline struct bhi_worker *bhi_worker_of(const struct bhi_core_worker *core) {
    return BHI_CONTAINER(core, struct bhi_worker, core);
}

#endif
