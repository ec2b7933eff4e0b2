#include "ipc/chroot.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool bhi_in_chroot(void) {
    /* The root of a mount namespace is the root of a mount. */
    struct statx root;
    memset(&root, 0, sizeof root);
    if (syscall(SYS_statx, AT_FDCWD, "/", 0, STATX_TYPE, &root) == 0 &&
        (root.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
        (root.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) {
        return true;
    }
    /* The root is a mount, but not the one where the first process of the same mount namespace has
     * its root. */
    struct stat ours, theirs, our_mounts, their_mounts;
    return stat("/proc/thread-self/ns/mnt", &our_mounts) == 0 &&
           stat("/proc/1/ns/mnt", &their_mounts) == 0 && same(&our_mounts, &their_mounts) &&
           stat("/", &ours) == 0 && stat("/proc/1/root/", &theirs) == 0 && !same(&ours, &theirs);
}
