/* Folders whose owner may be killed at any time, together with the process that would clean up
 * after it: a zygote's runtime folder and its cgroup. Such a folder has the sticky bit from the
 * beginning, and its maker holds a shared lock (flock) on it while it lives. The kernel drops the
 * lock when the last process that has the descriptor ends. So a folder with the bit and without a
 * lock has no owner, whichever pid namespace the owner was in. A folder without the bit is not
 * touched. */
#ifndef BHI_SUPERVISOR_WORKER_DIRECTORY_LOCK_H
#define BHI_SUPERVISOR_WORKER_DIRECTORY_LOCK_H

#include <sys/types.h>

/* Makes |name| in the open folder |parent|, locked. Returns the descriptor to keep open (closing it gives the lock up), or
 * -errno; -EEXIST: the name is taken, try another. */
int bhi_directory_lock_make(int parent, const char *name, mode_t mode);
/* Remove from |parent| what dead owners have left: folders of our user, a minute old, not locked.
 * Follow no links, remove a bounded number, and leave failures to the next call. */
void bhi_directory_lock_sweep_folders(const char *parent);
/* Only empty groups, and only of a pid that is not in use. */
void bhi_directory_lock_sweep_cgroups(const char *parent);

#endif
