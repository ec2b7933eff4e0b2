/* The watchdog: threads of the worker that stop what runs, while the session waits for the device.
 * They allocate nothing. If a processor can write the abort words, they make no call of the driver;
 * else they use the transfer queue (worker/vulkan/transfer.h).
 *
 *   watchdog        waits until the supervisor asks for the end of a submission (lane.abort_seq)
 *   host-watchdog   waits for the end of the host: the warden's pipe hangs up or, if the warden was
 *                   killed too, the descriptor socket does. Then it stops everything and exits:
 *                   work of a killed process goes on running on a GPU, and all others on that GPU
 *                   wait for it.
 */
#ifndef BHI_WORKER_SESSION_WATCHDOG_H
#define BHI_WORKER_SESSION_WATCHDOG_H

#include "ipc/lane.h"
#include "worker/backend.h"
#include "worker/error.h"
#include "worker/sentinel.h"

struct bhi_watchdog {
    const struct bhi_lane_header *lane;
    int farewell;                                 /* read end of the zygote's pipe; -1: none */
    struct bhi_backend *_Atomic backend;          /* NULL: nothing runs yet */
    struct bhi_sentinel_device *_Atomic sentinel; /* for a sentinel, which has no backend */
    atomic_bool busy;                             /* the session runs records */
    atomic_bool host_gone; /* the host has gone: a wait for it would never end */
};

/* Starts the threads, which run as long as the process. Call it after the layers that act on one
 * thread only, and before filter B, which forbids new threads. Returns 0 or -errno. */
int bhi_watchdog_start(struct bhi_watchdog *watchdog, const struct bhi_lane_view *lane,
                       int farewell, struct bhi_error *failure);

#endif
