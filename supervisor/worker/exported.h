/* Descriptors that a worker hands out as exported device memory. */
#ifndef BHI_WORKER_EXPORTED_H
#define BHI_WORKER_EXPORTED_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if |fd| can be |bytes| of exported device memory. Drivers hand out a node of their
 * own (NVIDIA), a dma-buf (Mesa's drivers for GPUs), or a file in memory (lavapipe); the last two
 * must be long enough. Checks no more than that: the host passes the descriptor on and closes it,
 * and never reads, writes or maps it. Whoever imports it has a driver that judges the rest.
 * Does not block: no file system whose server may be dead is asked. */
bool bhi_exported_is_memory(int fd, uint64_t bytes);

#endif
