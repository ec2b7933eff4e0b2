/* Finds and starts the worker executable. */
#ifndef BHI_SUPERVISOR_WORKER_LAUNCH_H
#define BHI_SUPERVISOR_WORKER_LAUNCH_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <sys/types.h>

/* Resolves the executable and the parent of the runtime folders. Both are malloced. *out_remedy is
 * static: what to do if the executable turns out to be no worker, after BHI_CORRECTION. */
bh_status bhi_spawn_paths(const bh_context_options *options, char **out_worker,
                          const char **out_remedy, char **out_parent, bh_detail *detail);
/* Starts `<path> <mode>` (warden or opener) in a process group of its own, with |socket| as its
 * descriptor 3, default signals and a clean environment. Returns its pidfd (the pid cannot have
 * been reused: it waits for its first message) or -errno. */
int bhi_spawn(const char *path, const char *mode, int socket, pid_t *out_pid);
/* Writes into |detail| that the file at |path| cannot be run, because of |error|. */
bh_status bhi_spawn_fail(bh_detail *detail, const char *prefix, const char *path,
                         const char *remedy, int error);
/* Returns true if this error of execve is about the file, not about missing resources. */
bool bhi_spawn_is_of_file(int error);
/* Kills a child and waits for its end; closes the pidfd. */
void bhi_spawn_kill(int pidfd);
/* Reaps it if nobody else has. Never blocks. */
void bhi_spawn_reap(int pidfd);

#endif
