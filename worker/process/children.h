/* The zygote's children that the host wants to hear of: workers, probers, tracers; and their ends.
 *
 * A death is reported before the child is reaped, and the reaping comes later: it waits until the
 * last thread of a worker is through, and keeps a processor busy meanwhile. The worker that takes
 * over needs that processor (decision 4). */
#ifndef BHI_WORKER_PROCESS_CHILDREN_H
#define BHI_WORKER_PROCESS_CHILDREN_H

#include "ipc/wire.h"
#include "worker/error.h"
#include "worker/probe/probe.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BHI_CHILDREN_MOST = 4096 };
#define BHI_TRACE_LAYER UINT32_MAX /* a tracer, which is a prober of no layer */

struct bhi_child { /* a worker; a prober, if |report| is not NULL */
    pid_t pid;     /* 0: free */
    /* Keeps its device open (device_holder.h); 0: none. When the worker has ended, this child
     * stands for both: |pid| is the holder's, and |ended| says how the worker ended. */
    pid_t device_holder;
    siginfo_t ended; /* si_pid is 0: it has not */
    bool released;   /* the holder may end with the worker */
    uint32_t layer;
    uint64_t worker;
    uint64_t deadline_ns; /* a prober's */
    bool killed;
    int farewell;    /* write end of the pipe that tells it of the host's end; -1: none */
    bool has_device; /* it sees the host's end itself, and then exits */
    struct bhi_probe_report *report;
};

struct bhi_children {
    void (*tell)(const struct bhi_message *message); /* sends it to the host */
    int signals;                                     /* signalfd for SIGCHLD: poll it */
    uint64_t reap_ns; /* when the dead are reaped; BHI_FOREVER: there are none */
    size_t used;      /* the places behind have never been taken */
    struct bhi_child of[BHI_CHILDREN_MOST];
};

/* |children| is zeroed. Blocks SIGCHLD. Returns 0, or -errno and fills in |failure|. */
int bhi_children_init(struct bhi_children *children, void (*tell)(const struct bhi_message *),
                      struct bhi_error *failure);

/* A free place, which the caller fills in, or NULL if there is none. */
struct bhi_child *bhi_children_place(struct bhi_children *children);
bool bhi_children_has(struct bhi_children *children, uint64_t worker);
unsigned bhi_children_probers(const struct bhi_children *children);

/* The worker's device holder may end as soon as the worker has. */
void bhi_children_release(struct bhi_children *children, uint64_t worker);

/* |signals| is readable: tells the host which children have ended, and has them reaped later. */
void bhi_children_ended(struct bhi_children *children);
/* Reaps all processes that have ended, also inherited ones. Due at |reap_ns|. */
void bhi_children_reap(struct bhi_children *children);
/* Kills probers whose time is up; their end is reported as a worker's. Returns how many ms poll()
 * may sleep; -1: for ever. */
int bhi_children_timeout(struct bhi_children *children);

/* Tells each worker with a device that the host has gone, or only (|host_gone| is false) that the
 * warden has, which may mean the same. Each has a pipe of its own, as one of them could empty a
 * common one. */
void bhi_children_say_farewell(struct bhi_children *children, bool host_gone);

/* Kills children that have nothing to stop on a device. Returns whether others are left. Held
 * devices stay so until then: their release would take the lock that the others need to stop what
 * they run, and would wait for that itself. */
bool bhi_children_let_go(const struct bhi_children *children);

#endif
