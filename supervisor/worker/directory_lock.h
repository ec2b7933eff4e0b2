/* Folders whose owner may be killed at any time, together with whoever would clean up after it: a
 * zygote's runtime folder and its cgroup. A locked folder carries the sticky bit from its first
 * moment, and its maker keeps a shared lock (flock) on it for as long as it lives; the kernel drops
 * it at the end of the last process that holds the descriptor. So a locked folder that nobody
 * locks is nobody's, whichever pid namespace its owner was in; one without the bit is not asked. */
#ifndef BHI_SUPERVISOR_WORKER_DIRECTORY_LOCK_H
#define BHI_SUPERVISOR_WORKER_DIRECTORY_LOCK_H

#include <sys/types.h>

/* Makes |path|, locked. Returns the descriptor to keep open (closing it gives the lock up), or
 * -errno; -EEXIST: the name is taken, try another. */
int bhi_directory_lock_make(const char *path, mode_t mode);
/* Remove from |parent| what dead owners have left: our user's, a minute old, not locked. No links
 * are followed, a bounded number is removed, and what fails is left to the next call. */
void bhi_directory_lock_sweep_folders(const char *parent);
/* Only empty groups, and only of a pid that is not in use. */
void bhi_directory_lock_sweep_cgroups(const char *parent);

#endif
