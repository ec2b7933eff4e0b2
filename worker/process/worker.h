/* A worker, from fork to its session. Each step that fails says so in progress and ends the worker
 * with BHI_EXIT_START_FAILED.
 *
 *   progress, lane mapped → descriptors → capabilities, no_new_privs, dumpable, Landlock, rlimits
 *   → channel, hello → filter A → watchdog → session start (device, threads, warm-up)
 *   → device holder → filter B → session
 *
 * Layers that act on one thread only come before the channel, which starts the first threads. The
 * channel comes before filter A, which forbids socket() and connect(). */
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
    const struct bhi_scouted *scouted; /* the driver's devices, if there are several */
    uint64_t layers;                   /* bits of the layers in force in the zygote */
    const struct bhi_msg_spawn *spawn;
    int fds[BHI_SPAWN_FDS];
    int device_holder; /* socket of the device holder; -1: none */
    int farewell; /* read end of its pipe from the zygote, which tells of the host's end; -1: none */
};

/* Runs in the forked child. */
_Noreturn void bhi_worker_run(struct bhi_worker_config *config);

#endif
