/* The watchdog: threads of the worker that have what runs end, while the session waits for the
 * device. They allocate nothing, and call nothing of the driver where a processor can write the
 * abort words; elsewhere they use the transfer queue (worker/vulkan/transfer.h).
 *
 *   watchdog        waits for the supervisor's word that one submission shall end (lane.abort_seq)
 *   host-watchdog   waits for the end of the host, of which the warden tells by closing its end of
 *                   a pipe, or, where the warden was killed too, the side channel by hanging up;
 *                   has everything end and then exits. What a process that is killed has running
 *                   on a GPU goes on running there, and all others on that GPU wait for it.
 */
#ifndef BHI_WORKER_SESSION_WATCHDOG_H
#define BHI_WORKER_SESSION_WATCHDOG_H

#include "ipc/lane.h"
#include "worker/backend.h"
#include "worker/error.h"
#include "worker/sentinel.h"

/* How long workers have to end by themselves when the host has gone; the zygote goes after that,
 * and takes them with it. A kernel that runs on a GPU ends in about 20 ms. */
#define BHI_FAREWELL_MS 100

struct bhi_watchdog {
    const struct bhi_lane_header *lane;
    int farewell;                                 /* read end of the warden's pipe; -1: none */
    struct bhi_backend *_Atomic backend;          /* NULL: nothing runs yet */
    struct bhi_sentinel_device *_Atomic sentinel; /* of a sentinel, which has no backend */
    atomic_bool busy;                             /* the session has records that it runs */
    atomic_bool host_gone; /* the host has gone: who waits for it waits for ever */
};

/* Starts them, for as long as the process lives: behind the sandbox's layers, which act on one
 * thread only, and before filter B, which knows no new threads. Returns 0 or -errno. */
int bhi_watchdog_start(struct bhi_watchdog *watchdog, const struct bhi_lane_view *lane,
                       int farewell, struct bhi_error *failure);

#endif
