/* The session: what a worker does once it is isolated. It owns the backend, consumes the lane,
 * handles control messages and publishes progress. One thread.
 *
 *   worker.c:  fork → sandbox layers → channel, hello → filter A
 *              → bhi_session_start (device, warm-up) → filter B → bhi_session_run → exit
 */
#ifndef BHI_WORKER_SESSION_SESSION_H
#define BHI_WORKER_SESSION_SESSION_H

#include "base/worker_kind.h"
#include "ipc/channel.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "worker/backend.h"
#include "worker/session/watchdog.h"

struct bhi_session_config {
    struct bhi_lane_view *lane;
    struct bhi_progress *progress;
    struct bhi_channel *channel;
    int fdpass;   /* side channel: one tagged descriptor per message that announces one */
    int doorbell; /* eventfd of the supervisor's reactor */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    uint32_t device_index;
    const struct bhi_pci *pci; /* where that one is; NULL: the number says it */
    /* All that the driver has, where this worker's driver sees its own alone; NULL: ask it. */
    const struct bhi_msg_device *devices;
    size_t device_count;
    struct bhi_watchdog *watchdog; /* NULL: nothing that runs can be told to end */
    enum bhi_worker_kind kind;     /* without a device: loader.h, compiler.h */
};

struct bhi_session;

/* Creates the device (or the loader, or the compiler), sends the `device` messages, warms up. On
 * failure: the step's error is in progress (bhi_progress_step_failed), the device messages that
 * could be had were sent, and NULL is returned. */
struct bhi_session *bhi_session_start(const struct bhi_session_config *config);
/* Sends `ready` with |layers|, then serves until `shutdown` (returns 0) or an error
 * of the supervisor's side (returns an exit code; the supervisor is gone or broken). A lost device
 * publishes what it owes, then returns BHI_EXIT_DEVICE_LOST. */
int bhi_session_run(struct bhi_session *session, uint64_t layers);
void bhi_session_destroy(struct bhi_session *session);

/* Exit codes of a worker, for verdicts and logs. */
enum bhi_exit {
    BHI_EXIT_OK = 0,
    BHI_EXIT_DEVICE_LOST = 70,
    BHI_EXIT_START_FAILED = 71, /* progress says which step */
    BHI_EXIT_SUPERVISOR = 72,   /* a malformed record or message from the supervisor */
};

#endif
