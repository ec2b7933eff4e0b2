/* Scouts list the devices of a driver before the first worker starts. They run only if the machine
 * has several device nodes, one for each device: then a worker gets only its own node, and its
 * driver sees only that device.
 *
 *   zygote ──fork──▶ prober ──fork──▶ a scout, with all nodes: lists the devices
 *                           └─fork──▶ one for each device, with its node alone: is it still there?
 *
 * Scouts enter the sandbox as a worker does, up to filter A, and only list the driver's devices. If
 * a driver does not work with one node, this shows here, and its workers get all nodes. */
#ifndef BHI_WORKER_PROBE_SCOUT_H
#define BHI_WORKER_PROBE_SCOUT_H

#include "ipc/wire.h"
#include "worker/probe/probe.h"
#include "worker/sandbox/nodes.h"

struct bhi_scouted {
    struct bhi_nodes nodes;
    struct bhi_msg_device devices[BHI_NODES_MOST]; /* nodes.devices of them */
};

/* Fills in |out|. The zygote calls it before its first worker. Waits for a bounded time. */
void bhi_scout(const struct bhi_probe_context *context, struct bhi_scouted *out);

#endif
