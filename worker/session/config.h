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
    int fdpass;   /* descriptor socket: one tagged descriptor for each message that needs it */
    int doorbell; /* eventfd that wakes the supervisor's reactor */
    const struct bhi_backend_ops *ops; /* which backend, as in bhi_backend_config */
    bhi_entry entry;
    uint32_t device_index;
    const struct bhi_pci *pci; /* PCI address of that device; NULL: use the number */
    /* All devices of the driver, if this worker's driver sees only its own; NULL: ask the
     * driver. */
    const struct bhi_msg_device *devices;
    size_t device_count;
    struct bhi_watchdog *watchdog; /* NULL: what runs cannot be stopped */
    enum bhi_worker_kind kind;     /* kinds without a device: see loader.h, compiler.h */
    void *nvrtc;                   /* the library, for a compiler; NULL: none */
};

#endif
