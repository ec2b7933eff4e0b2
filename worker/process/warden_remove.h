/* Removing what a dead host has left behind. Only plain entries directly in the folder are
 * removed, no symbolic link is followed, and nothing here waits for more than |patience_ns|. */
#ifndef BHI_WORKER_PROCESS_WARDEN_REMOVE_H
#define BHI_WORKER_PROCESS_WARDEN_REMOVE_H

#include <stdint.h>

/* Unlinks files and sockets in |path|, then removes it. Returns 0 or -errno. */
int bhi_remove_runtime_dir(const char *path);
/* Removes the child groups of |path| and itself; the kernel needs a moment after the last process
 * of a group has gone. Returns 0 or -errno. */
int bhi_remove_cgroup(const char *path, uint64_t patience_ns);

#endif
