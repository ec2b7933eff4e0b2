/* Where a context makes its folder of sockets, and which owners and modes of that place are safe.
 */
#ifndef BHI_IPC_RUNTIME_PARENT_H
#define BHI_IPC_RUNTIME_PARENT_H

#include "base/links.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BHI_RUNTIME_UNMAPPED 65534u /* root's id in a user namespace that does not map it */

/* A user who owns a folder, or who may write to it while it is not sticky, can replace what we make
 * in it. So only we may own and write it, or it must be sticky and be root's or ours, as /tmp is.
 * If |path| is a link, the link must be root's or ours, too; bhi_links_open_folder refuses planted
 * links on the way. */
static inline bool bhi_runtime_parent_is_safe(const char *path) {
    struct stat link, folder;
    const int fd = bhi_links_open_folder(path, geteuid(), NULL, 0);
    const bool found = fd >= 0 && fstat(fd, &folder) == 0 && lstat(path, &link) == 0;
    if (fd >= 0) {
        close(fd);
    }
    if (!found) {
        return false;
    }
    if (S_ISLNK(link.st_mode) && link.st_uid != geteuid() && link.st_uid != 0) {
        return false;
    }
    if (folder.st_mode & S_ISVTX) {
        return folder.st_uid == geteuid() || folder.st_uid == 0 ||
               folder.st_uid == BHI_RUNTIME_UNMAPPED;
    }
    return folder.st_uid == geteuid() && (folder.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The default: XDG_RUNTIME_DIR if that is usable, else /tmp. */
static inline const char *bhi_runtime_parent(void) {
    /* After su the variable is often set to a folder that is not usable, or another user's. Then it
     * is ignored, as is a path that no message can carry. */
    const char *parent = secure_getenv("XDG_RUNTIME_DIR");
    return parent && parent[0] == '/' && access(parent, W_OK | X_OK) == 0 &&
                   bhi_runtime_parent_is_safe(parent) && bhi_text_is_line(parent)
               ? parent
               : "/tmp";
}

#endif
