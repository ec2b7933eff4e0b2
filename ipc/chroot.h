/* Detects a chroot, in which the kernel refuses user namespaces (EPERM). */
#ifndef BHI_IPC_CHROOT_H
#define BHI_IPC_CHROOT_H

#include <stdbool.h>

/* True: this process is certainly in a chroot. False: it is not, or that cannot be seen from inside
 * (a chroot to a mount point, without root's rights or without /proc). */
bool bhi_in_chroot(void);

/* What the user can do about it. */
#define BHI_CHROOT_ADVICE                                                                          \
    "enter that root by pivot_root instead of chroot, as systemd-nspawn, bwrap and containers do"

#endif
