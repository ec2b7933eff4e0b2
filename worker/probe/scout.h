/* Scouts: what devices a driver has, seen before there is a worker. Only where the machine has
 * several device nodes of which each device has one: then a worker is left its own alone, and its
 * driver sees that device alone.
 *
 *   zygote ──fork──▶ prober ──fork──▶ a scout, with all nodes: lists the devices
 *                           └─fork──▶ one for each device, with its node alone: is it still there?
 *
 * Scouts go in as a worker does, to behind filter A, and run nothing but the driver's listing. A
 * driver that does not live with one node is found out here; its workers have all of them. */
#ifndef BHI_WORKER_PROBE_SCOUT_H
#define BHI_WORKER_PROBE_SCOUT_H

#include "ipc/wire.h"
#include "worker/probe/probe.h"
#include "worker/sandbox/nodes.h"

struct bhi_scouted {
    struct bhi_nodes nodes;
    struct bhi_msg_device devices[BHI_NODES_MOST]; /* nodes.devices of them */
};

/* Fills in |out|, in the zygote, before its first worker. Waits, for a bounded time. */
void bhi_scout(const struct bhi_probe_context *context, struct bhi_scouted *out);

#endif
