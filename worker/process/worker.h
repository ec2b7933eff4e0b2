/* A worker, from fork to its session. Each step that fails says so in progress and ends the worker
 * with BHI_EXIT_START_FAILED.
 *
 *   progress, lane mapped → descriptors → capabilities, no_new_privs, dumpable, Landlock, rlimits
 *   → holder → channel, hello → filter A → watchdog → session start (device, threads, warm-up)
 *   → filter B → session
 *
 * What acts on one thread only comes before the channel, whose threads are the first. The channel
 * comes before filter A, which knows no socket() and no connect(). */
#ifndef BHI_WORKER_PROCESS_WORKER_H
#define BHI_WORKER_PROCESS_WORKER_H

#include "ipc/wire.h"
#include "worker/probe/scout.h"
#include "worker/sandbox/driver.h"
#include <stdint.h>

enum bhi_spawn_fd {
    BHI_SPAWN_LANE,
    BHI_SPAWN_PROGRESS,
    BHI_SPAWN_FDPASS,
    BHI_SPAWN_DOORBELL,
    BHI_SPAWN_CHANNEL,
    BHI_SPAWN_FDS,
};

struct bhi_worker_config {
    const struct bhi_driver *driver;
    const struct bhi_scouted *scouted; /* the driver's devices, where there are several */
    uint64_t layers;                   /* bits that hold in the zygote */
    unsigned ordinal; /* 1, 2, … in its zygote; sentinels: from BHI_SENTINEL_ORDINAL on */
    struct bhi_msg_spawn *spawn; /* the token in it is wiped once it is sent */
    int fds[BHI_SPAWN_FDS];
    int holder;   /* read end of the memory holder's pipe; -1: none wanted */
    int farewell; /* read end of the warden's pipe: hung up when the host has gone */
};

/* In the forked child. */
_Noreturn void bhi_worker_run(struct bhi_worker_config *config);

#endif
