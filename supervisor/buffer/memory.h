/* How much memory the machine and this process's cgroup have left, for large reservations. */
#ifndef BHI_SUPERVISOR_BUFFER_MEMORY_H
#define BHI_SUPERVISOR_BUFFER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if the machine, and the memory cgroups of this process, have |bytes| left. A
 * reservation of more would not fail, but the OOM killer would kill a process. Always true if
 * |bytes| is small. */
bool bhi_memory_available(uint64_t bytes);

#endif
