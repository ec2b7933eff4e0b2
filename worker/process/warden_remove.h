/* Removes what a dead host has left. Removes only plain entries directly in the folder, follows no
 * symbolic link, and waits for at most |patience_ns|. */
#ifndef BHI_WORKER_PROCESS_WARDEN_REMOVE_H
#define BHI_WORKER_PROCESS_WARDEN_REMOVE_H

#include <stdint.h>

/* Unlinks files and sockets in |path|, then removes it. Returns 0 or -errno. */
int bhi_remove_runtime_dir(const char *path);
/* Removes the child groups of |path|, then |path|. The kernel needs a moment after the last process
 * of a group has gone. Returns 0 or -errno. */
int bhi_remove_cgroup(const char *path, uint64_t patience_ns);

#endif
