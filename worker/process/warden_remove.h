/* Removes what a dead host has left. Follows no symbolic link. */
#ifndef BHI_WORKER_PROCESS_WARDEN_REMOVE_H
#define BHI_WORKER_PROCESS_WARDEN_REMOVE_H

#include <stdint.h>

/* Removes the child groups of |path|, then |path|. The kernel needs a moment after the last process
 * of a group has gone, at most |patience_ns|. Returns 0 or -errno. */
int bhi_remove_cgroup(const char *path, uint64_t patience_ns);

#endif
