/* What /proc says of a worker, before it gets its first job: each thread must be behind the
 * filter, without capabilities, with no_new_privs. The worker itself is not asked. */
#ifndef BHI_SUPERVISOR_WORKER_PROC_STATUS_H
#define BHI_SUPERVISOR_WORKER_PROC_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Checks /proc/PID/task/<each>/status: Seccomp 2, NoNewPrivs 1, CapInh/Prm/Eff/Bnd/Amb 0. |pidfd|
 * must refer to the same live process before and after (no reuse of the pid in between).
 * Returns 0; -EPERM where a thread lacks something (|why| names thread and field); -ESRCH when the
 * process is gone; -errno. Bounded: 256 threads at most. */
int bhi_proc_status_check(pid_t pid, int pidfd, char *why, size_t why_size);
/* The pid behind |pidfd| in our pid namespace, from /proc/self/fdinfo; 0 if gone; -errno. */
pid_t bhi_pidfd_pid(int pidfd);

/* Is process |pid|, which is not reaped yet, on its way out? Also where /proc does not say. */
bool bhi_proc_is_exiting(pid_t pid);
/* Does it need nothing but a processor? */
bool bhi_proc_is_runnable(pid_t pid);

#endif
