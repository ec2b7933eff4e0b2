/* Finds the two programs, bulkhead-warden and bulkhead-worker, and starts the first; that one executes
 * the other. */
#ifndef BHI_SUPERVISOR_WORKER_LAUNCH_H
#define BHI_SUPERVISOR_WORKER_LAUNCH_H

#include "supervisor/context/context.h"
#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <sys/types.h>

#define BHI_WARDEN_REMEDY "install this library's bulkhead-warden beside its bulkhead-worker"

/* Fills in the paths of |out|, malloced, and worker_remedy. The warden is the one beside the worker, else
 * the one near the library. */
bh_status bhi_spawn_paths(const bh_context_options *options, struct bhi_context_settings *out,
                          bh_detail *detail);
/* Starts `<path> <mode>` (warden or opener) in a process group of its own, with |socket| as its
 * descriptor 3, default signals and a clean environment. Returns its pidfd (the pid cannot have
 * been reused: it waits for its first message) or -errno. */
int bhi_spawn(const char *path, const char *mode, int socket, pid_t *out_pid);
/* Returns true if this error of execve is about the file, not about missing resources. */
bool bhi_spawn_is_of_file(int error);
/* Kills a child and waits for its end; closes the pidfd. */
void bhi_spawn_kill(int pidfd);
/* Reaps it if nobody else has. Never blocks. */
void bhi_spawn_reap(int pidfd);

#endif
