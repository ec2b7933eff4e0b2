/* How much memory the machine and this process's cgroup have left, for large reservations. */
#ifndef BHI_SUPERVISOR_BUFFER_MEMORY_H
#define BHI_SUPERVISOR_BUFFER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the machine, and the memory cgroups that this process is in, have that much to give.
 * Reserving more would not fail but bring the OOM killer upon somebody. Of small requests nobody
 * asks. */
bool bhi_memory_available(uint64_t bytes);

#endif
