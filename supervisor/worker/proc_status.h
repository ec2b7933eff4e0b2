/* Checks a worker in /proc before its first job: each thread must have the filter, no capabilities,
 * and no_new_privs. What the worker itself reports does not count. */
#ifndef BHI_SUPERVISOR_WORKER_PROC_STATUS_H
#define BHI_SUPERVISOR_WORKER_PROC_STATUS_H

#include "base/proc_place.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Checks the status of each thread at |place|: Seccomp 2, NoNewPrivs 1, CapInh/Prm/Eff/Bnd/Amb 0.
 * |pidfd| must refer to the same live process before and after (no reuse of the pid in between).
 * Returns 0; -EPERM where a thread lacks something (|why| names thread and field); -ESRCH when the
 * process is gone; -errno: ENOENT where |place| hides it. Bounded: 256 threads at most. */
int bhi_proc_status_check(const struct bhi_proc_place *place, int pidfd, char *why,
                          size_t why_size);
/* The pid behind |pidfd| in our pid namespace, from our fdinfo; 0 if gone; -errno. */
pid_t bhi_pidfd_pid(int pidfd);
/* The same in the namespace of |proc|, which is |inside|: see struct bhi_proc_place. */
pid_t bhi_pidfd_pid_in(int pidfd, bool inside);

/* Returns true if it waits for nothing but a processor. */
bool bhi_proc_is_runnable(pid_t pid);
/* Returns true if a signal has stopped it (SIGSTOP). */
bool bhi_proc_is_stopped(const struct bhi_proc_place *place);
/* Returns the processor time that it has used in its life; 0: it was reaped. */
uint64_t bhi_proc_cpu_ns(pid_t pid);
/* The same as RLIMIT_CPU counts it: in ticks, so it may differ by a lot on a virtual machine. */
uint64_t bhi_proc_limited_ns(pid_t pid);

#endif
