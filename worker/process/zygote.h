/* The zygote: pid 1 of the sandbox's namespaces. It has the driver's library loaded, no thread, and
 * forks workers on request.
 *
 * State:
 *
 *   (cloned) ──ids mapped──▶ loading ──▶ rooting ──zygote_ready──▶ serving ──end of file──▶ exit
 *       │                       │           │                        │ spawn   → spawned(pidfd)
 *       └────────── zygote_failed, exit ────┘                        │          | spawn_failed
 *                                                                    │ probe   → probed
 *                                                                    └ SIGCHLD → exited, once each
 * If the driver has several devices, the zygote runs scouts (scout.h) between rooting and serving.
 *
 * When it ends, the kernel kills all its workers, because they are in its pid namespace. */
#ifndef BHI_WORKER_PROCESS_ZYGOTE_H
#define BHI_WORKER_PROCESS_ZYGOTE_H

/* Its descriptors are those of enum bhi_zygote_descriptors. Never returns; a process that no warden has
 * executed ends at once. */
_Noreturn void bhi_zygote_run(void);

#endif
