/* A worker process as the supervisor sees it: what it has, and what it was told. Its states, and all
 * that is known of its death, are core.life (core/life.h). One that runs without a stream is a
 * spare, which may learn kernels before a stream takes it (supervisor/reactor/spares.h). Each
 * process has its own object, so a late message of a dead one cannot reach the next (E12).
 */
#ifndef BHI_SUPERVISOR_WORKER_WORKER_PROC_H
#define BHI_SUPERVISOR_WORKER_WORKER_PROC_H

#include "base/futex.h"
#include "base/idset.h"
#include "base/list.h"
#include "base/worker_kind.h"
#include "core/worker.h"
#include "ipc/channel.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "ipc/wire.h"
#include "supervisor/context/context.h"
#include "supervisor/context/room.h"
#include "supervisor/worker/address_space.h"
#include "supervisor/worker/conduct.h"
#include "supervisor/worker/kernels.h"
#include "supervisor/worker/pool_user.h"
#include "supervisor/worker/words.h"
#include <bulkhead/device.h>

struct bhi_zygote;

/* A control message on its way to a worker. */
struct bhi_outgoing {
    struct bhi_list link;
    struct bhi_message message;
    int fd; /* owned; -1: none */
    bool fd_sent;
};

/* What a worker has reported about a kernel that it has compiled. */
struct bhi_reflection {
    struct bhi_list link;
    uint64_t kernel;
    struct bh_kernel_info info;
};

/* The worker's pipeline cache (supervisor/reactor/pipeline_cache.h). */
enum bhi_cache_state { BHI_CACHE_NONE, BHI_CACHE_WAITING, BHI_CACHE_READY };

struct bhi_worker_cache {
    enum bhi_cache_state state; /* context's lock, all of it */
    bool requested;             /* once in its life */
    int area;                   /* -1: none */
    uint8_t identity[32];       /* of the file, as what follows */
    char tenant[BHI_TENANT];
    uint64_t code; /* of the kernel (core/past.h) */
    bool loaded;   /* there was a file */
};

/* What a spare has learned, and learns. Context's lock, all of it. */
struct bhi_lessons {
    bool adopted;            /* it was told kernels of |tenant|, and serves no other (T1) */
    char tenant[BHI_TENANT]; /* if adopted */
    uint64_t kernel;         /* id of the one that it compiles now; 0: none */
    uint64_t since_ns, until_ns;
    uint8_t hash[32]; /* of that one, as what follows */
    uint64_t code;
    char name[64];
};

struct bhi_worker {
    struct bhi_core_worker core; /* lock: its lane, its stream, its life */
    _Atomic uint32_t refs;
    bh_context *context;
    struct bhi_zygote *zygote; /* referenced */
    uint64_t id;
    char device[48];
    uint32_t device_index;
    uint64_t memory_limit;
    uint64_t oom_kills; /* bhi_oom_kills() when it was started, if it has no memory cgroup */
    uint32_t processor; /* on which alone it runs, plus 1; 0: all */
    uint32_t nice;      /* how many nice levels it is above its zygote */
    bool start_fails;   /* chaos: its fork is to fail */
    enum bhi_worker_kind kind;
    struct bhi_spin stream_spin; /* of host threads on progress.completed_word */

    /* Reactor thread only. */
    struct bhi_channel channel;
    bool messages_left; /* messages are left: look again without waiting */
    bool ready_logged;
    uint64_t layers; /* that hold, as its `ready` reports */
    int fdpass;      /* what comes back through it is read under the lock (harvest.c); -1: closed */
    bool hands_out;  /* it can send descriptors there: it runs on a GPU */
    int doorbell;
    struct bhi_proc_place place; /* |pid| 0: it has not been forked, or was gone at once */
    struct bhi_room_held room;   /* while it starts: for its pidfd, and for looks at /proc */
    uint8_t token[BHI_TOKEN_BYTES];
    struct bhi_control_source pidfd_source, doorbell_source, channel_source, fdpass_source;
    struct bhi_conduct conduct;
    struct bhi_reflection *reflecting; /* its bindings are arriving */
    uint64_t passing_over; /* kernel whose bindings are skipped: out of memory; 0: none */

    /* Lock. */
    struct bhi_list link; /* context->workers */
    struct bhi_lane lane;
    struct bhi_progress_view progress;
    struct bhi_worker_cache cache;
    struct bhi_words words;
    struct bhi_lessons lessons;
    uint64_t refused_seen; /* progress.refused_allocations at the last harvest */
    struct bhi_address_space space;
    struct bhi_idset buffers;   /* attached: buffers without a block, and blocks (pool.h) */
    struct bhi_idset written;   /* of them, those that it may write */
    struct bhi_idset constants; /* of them, those whose content it may rely on */
    struct bhi_pool_user pool;
    bool awaited; /* it is dead, and somebody waits for memory that its device may write (C3) */
    struct bhi_worker_kernels kernels; /* created */
    struct bhi_idset files;            /* attached */
    struct bhi_list makes;             /* bhi_make.link: its answers come through fdpass */
    bool make_descriptor_lost;         /* no descriptor was free to receive one of them */
    uint64_t owes_since_ns;            /* when the last of them was asked for, or answered */
    bool makes_awaited;                /* another stream waits for one of them */
    struct bhi_list outbox;            /* bhi_outgoing.link */
    uint32_t control_sent;             /* queued so far, modulo 2^32 */
    int pidfd;
    uint64_t idle_since_ns;  /* since when checks have found no work; 0: no check yet */
    uint64_t idle_published; /* the newest in its lane then */
    struct bhi_msg_device *devices;
    uint32_t device_count, device_capacity;
    struct bhi_list reflections; /* bhi_reflection.link */
    bool reflection_lost;        /* there was no memory for one of them */
};

void bhi_worker_retain(struct bhi_worker *worker);
void bhi_worker_release(struct bhi_worker *worker); /* NULL is fine */

/* Returns the device that the worker has chosen, or NULL if it has not reported it yet. */
const struct bhi_msg_device *bhi_worker_chosen_device(const struct bhi_worker *worker);
/* Returns true if it has a memory cgroup of its own. */
bool bhi_worker_has_cgroup(const struct bhi_worker *worker);
/* The worker is killed, or dies: requests that its sentinel stops what runs. Lock held. */
void bhi_worker_end_words(struct bhi_worker *worker);

/* Returns true if it has been ready. */
static inline bool bhi_worker_served(const struct bhi_worker *worker) {
    return bhi_life_served(&worker->core.life);
}
static inline struct bhi_worker *bhi_worker_of(const struct bhi_core_worker *core) {
    return BHI_CONTAINER(core, struct bhi_worker, core);
}
/* Writes the device's PCI address, "0000:65:00.0", or "" if it is not known. */
void bhi_device_address(const struct bhi_msg_device *device,
                        char out[sizeof((bh_device_info *)NULL)->pci]);

#endif
