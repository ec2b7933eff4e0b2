/* The warden: the process between the host and the zygote. It has the host's privileges and none
 * of its threads.
 *
 *   host ──posix_spawn──▶ warden ──clone(namespaces)──▶ zygote ──fork──▶ workers
 *     ▲   seqpacket, fd 3   │  └─ picks the driver          ▲
 *     └──── pidfd ──────────┘     pidfd, death signal ──────┘
 *
 * Host gone, however it died → the zygote is killed (and the kernel kills all its workers), the
 * runtime folder and the cgroups are removed. Zygote gone → it is reaped. Warden gone → the zygote
 * leaves by itself (orphan.h). It waits only in poll(), for descriptors that the kernel must end,
 * and with a time limit wherever it waits for something that a peer owes it. */
#ifndef BHI_WORKER_PROCESS_WARDEN_H
#define BHI_WORKER_PROCESS_WARDEN_H

/* Returns an exit code (BHI_EXIT_*, exit.h). */
int bhi_warden_run(void);

#endif
