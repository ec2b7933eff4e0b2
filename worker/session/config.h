/* The configuration of a session: its descriptors, its lane and progress, its device. The caller
 * owns them. */
#ifndef BHI_WORKER_SESSION_CONFIG_H
#define BHI_WORKER_SESSION_CONFIG_H

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

#endif
