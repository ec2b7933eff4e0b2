#include "base/folder.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

DIR *bhi_folder_open(int folder, const char *path) {
    BHI_AUTO_FD fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir) {
        (void)bhi_fd_steal(&fd);
    }
    return dir;
}

bool bhi_folder_fsync(int folder) {
    return fsync(folder) == 0 || errno == EINVAL;
}

int bhi_folder_sync(int folder, const char *path) {
    BHI_AUTO_FD fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || !bhi_folder_fsync(fd) ? -errno : 0;
}

int bhi_folder_make(int folder, const char *path, mode_t mode) {
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX] = ".";
    const bool made = mkdirat(folder, path, mode) == 0;
    if (!made && errno != EEXIST) {
        return -errno;
    }
    if (slash) { /* a path that is longer was refused */
        snprintf(parent, sizeof parent, "%.*s", (int)(slash + 1 - path), path);
    }
    const int error = bhi_folder_sync(folder, parent);
    if (error && made) {
        (void)unlinkat(folder, path, AT_REMOVEDIR);
    }
    return error;
}

/* Removes |folder| from the folder that contains it now. */
static int remove_itself(int folder, const char *name) {
    char path[NAME_MAX + 4];
    struct stat ours, there;
    if ((size_t)snprintf(path, sizeof path, "../%s", name) >= sizeof path) {
        return -ENAMETOOLONG;
    }
    if (fstat(folder, &ours) != 0 || fstatat(folder, path, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino) {
        return -ESTALE;
    }
    return unlinkat(folder, path, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int bhi_folder_remove(int folder, const char *name) {
    DIR *dir = fdopendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(folder, entry->d_name, 0); /* of a link only the link */
        }
    }
    const int error = remove_itself(folder, name); /* if it cannot be read, it may still be empty */
    if (dir) {
        closedir(dir);
    } else {
        close(folder);
    }
    return error;
}
