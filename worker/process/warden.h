/* The warden: the process between the host and the zygote. It has the host's privileges and none
 * of its threads.
 *
 *   host ──posix_spawn──▶ warden ──clone(namespaces)──▶ zygote ──fork──▶ workers
 *     ▲   seqpacket, fd 3   │  └─ picks the driver          ▲
 *     └──── pidfd ──────────┘     pidfd, death signal ──────┘
 *
 * When the host has gone, however it died, the warden kills the zygote (the kernel then kills all
 * workers) and removes the runtime folder and the cgroups. When the zygote has gone, the warden
 * reaps it. When the warden has gone, the zygote ends by itself (orphan.h). The warden waits only
 * in poll(): for processes without a limit, because the kernel reports their end, and for a peer's
 * message with a time limit. */
#ifndef BHI_WORKER_PROCESS_WARDEN_H
#define BHI_WORKER_PROCESS_WARDEN_H

/* Returns an exit code (BHI_EXIT_*, exit.h). */
int bhi_warden_run(void);

#endif
