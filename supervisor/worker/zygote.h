/* A zygote (and its warden) as the supervisor sees it: one for each driver in use. Everything here
 * is done by the reactor thread.
 *
 *   STARTING ──▶ READY ──▶ LOST         LOST: its workers are dying with it; a new zygote is a
 *       └──────────────────▲            new object
 */
#ifndef BHI_SUPERVISOR_WORKER_ZYGOTE_H
#define BHI_SUPERVISOR_WORKER_ZYGOTE_H

#include "base/list.h"
#include "ipc/layers.h"
#include "ipc/wire.h"
#include "supervisor/context/context.h"
#include "supervisor/worker/cgroup.h"
#include "supervisor/worker/proc_status.h"
#include "supervisor/worker/trace.h"

enum bhi_zygote_state { BHI_ZYGOTE_STARTING, BHI_ZYGOTE_READY, BHI_ZYGOTE_LOST };

struct bhi_probe_answer {
    bool answered;
    uint32_t result;
    char text[256];
};

struct bhi_zygote {
    _Atomic uint32_t refs;
    bh_context *context;
    char requested[32]; /* driver as asked for; empty: the default */
    char runtime_dir[96];
    int runtime_lock;         /* keeps others from sweeping the folder; -1: there is none */
    struct bhi_cgroup cgroup; /* version 0: RLIMIT_DATA instead */
    char cgroup_why[256];

    /* Reactor thread only. */
    int socket;
    int warden_pidfd;
    int proc; /* a folder that shows its workers (base/proc_place.h); -1: it is not READY yet */
    int proc_error; /* 0: of its own pid namespace; else the host's, and why there is no other */
    struct bhi_control_source socket_source, pidfd_source, warden_source;
    uint64_t start_deadline_ns;
    bool held_by_loader; /* a loader that cannot be killed keeps it alive */
    bool gone;           /* it, or the warden before it was born, is dead */
    bool warden_gone;
    bool socket_ignored;    /* not polled: the host has no descriptor free for what it sends */
    uint64_t listen_at_ns;  /* socket_ignored: not polled before */
    uint64_t deaf_since_ns; /* since when nothing was received for want of descriptors; 0: none */
    bool pidfd_unwatched;   /* its death is only seen from its warden's */
    uint64_t *leftovers;    /* dead workers whose cgroup was still busy */
    size_t leftover_count, leftover_capacity;
    uint64_t sweep_at_ns, sweep_pause_ns; /* 0: none is left over */
    uint64_t bury_by_ns;                  /* LOST: when its warden is killed if it still lives */
    uint32_t bury_turns; /* how often it got more time, because it lacked a processor */

    /* Lock. */
    struct bhi_list link;      /* context->zygotes */
    struct bhi_list sentinels; /* bhi_sentinel.link */
    enum bhi_zygote_state state;
    int pidfd;
    char driver[32];
    bh_detail failure; /* LOST before it was READY: why */
    bool mute;         /* it ended before a message could be sent to it */
    bool no_program;   /* a file cannot be executed */
    struct bhi_probe_answer probes[BHI_LAYER_COUNT];
    struct bhi_zygote_trace trace;
    _Atomic uint32_t probe_word; /* futex word: changes with each answer */
};

/* Starts warden and zygote. On failure the object exists, LOST, with |failure| filled in. NULL:
 * out of memory. */
struct bhi_zygote *bhi_zygote_start(bh_context *context, const char *driver);
/* Returns true if |error|, an errno, is about the file of the worker's program, or of the warden's:
 * then |failure| says that it cannot be run. Lock held, or the zygote is in no list yet. */
bool bhi_zygote_lacks_program(struct bhi_zygote *zygote, bool worker, int error);
#define BHI_ZYGOTE_LOADING 300
/* Writes what a zygote loads that has not started yet, and which file its user has named for that.
 * NULL: there is nothing to say. */
const char *bhi_zygote_loading(const struct bhi_zygote *zygote, char out[BHI_ZYGOTE_LOADING]);
void bhi_zygote_retain(struct bhi_zygote *zygote);
void bhi_zygote_release(struct bhi_zygote *zygote);
/* Sends SIGKILL to the zygote, and the kernel kills its workers, too. A zygote that is not born yet
 * ends by itself when the socket is closed, as does its warden, which reaps it. */
void bhi_zygote_kill(struct bhi_zygote *zygote);
/* Removes the cgroup of a dead worker. The kernel may need a moment to see that it is empty. */
void bhi_zygote_remove_cgroup(struct bhi_zygote *zygote, uint64_t worker);
/* Tries again to remove what could not be removed. Returns true if something is left. */
bool bhi_zygote_sweep(struct bhi_zygote *zygote);
/* Its process is gone: removes folder and cgroup, reaps the warden. */
void bhi_zygote_bury(struct bhi_zygote *zygote);

#endif
