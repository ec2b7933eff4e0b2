#include "base/runtime_parent.h"
#include "base/fd.h"
#include "base/links.h"
#include "base/owner.h"
#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNMAPPED 65534u /* the owner that a user namespace shows for a user whom it does not map */

/* Returns true if |user| has an id in this user namespace, or if that cannot be read. */
static bool is_mapped(unsigned user) {
    unsigned first, outside, count;
    BHI_AUTO_FILE *map = fopen("/proc/thread-self/uid_map", "re");
    bool found = !map;
    while (map && !found && fscanf(map, "%u %u %u", &first, &outside, &count) == 3) {
        found = user >= first && user - first < count;
    }
    return found;
}

/* Where 65534 is mapped it is nobody's, a user like any other. Where it is not, root is not either,
 * as a rule, and owns /tmp. */
static bool is_root(uid_t user) {
    return user == 0 || (user == UNMAPPED && !is_mapped(UNMAPPED));
}

/* A user who owns a folder, or who may write to it while it is not sticky, can replace what we make
 * in it. So only we may own and write it, or it must be sticky and be root's or ours, as /tmp is. */
static bool is_safe(const struct stat *folder) {
    const bool ours = folder->st_uid == geteuid();
    return folder->st_mode & S_ISVTX ? ours || is_root(folder->st_uid)
                                     : ours && (folder->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* If |path| is a link, the link must be root's or ours, too; bhi_links_open_folder refuses planted
 * links on the way. */
int bhi_runtime_parent_open(const char *path) {
    struct stat link, folder;
    BHI_AUTO_FD fd = bhi_links_open_folder(path, geteuid(), NULL, 0);
    if (fd < 0) {
        return fd;
    }
    if (fstat(fd, &folder) != 0 || lstat(path, &link) != 0) {
        return -errno;
    }
    const bool followed = S_ISLNK(link.st_mode) && link.st_uid != geteuid() && link.st_uid != 0;
    return followed || !is_safe(&folder) ? -EPERM : bhi_fd_steal(&fd);
}

const char *bhi_runtime_parent(void) {
    /* After su the variable is often set to a folder that is not usable, or another user's. Then it
     * is ignored, as is a path that no message or socket can carry. */
    const char *parent = secure_getenv("XDG_RUNTIME_DIR");
    if (!parent || parent[0] != '/' || strlen(parent) > BHI_RUNTIME_PARENT_MOST ||
        !bhi_text_is_line(parent) || access(parent, W_OK | X_OK) != 0) {
        return "/tmp";
    }
    BHI_AUTO_FD folder = bhi_runtime_parent_open(parent);
    return folder >= 0 ? parent : "/tmp";
}
