#include "worker/process/warden_remove.h"
#include "base/fd.h"
#include "base/futex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define RETRY_NS 2000000

static DIR *open_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return dir;
}

static int is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Tries once to remove the groups. A cgroup's own files cannot be unlinked; they go with it. */
static int try_cgroup(const char *path) {
    DIR *dir = open_folder(path);
    if (!dir) {
        return errno == ENOENT ? 0 : -errno;
    }
    for (const struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        if (!is_dots(entry->d_name) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode)) {
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
    }
    closedir(dir);
    return rmdir(path) == 0 || errno == ENOENT ? 0 : -errno;
}

int bhi_remove_cgroup(const char *path, uint64_t patience_ns) {
    const uint64_t deadline = bhi_deadline_ns(patience_ns);
    for (;;) {
        int r = try_cgroup(path);
        if (r != -EBUSY || bhi_now_ns() >= deadline) {
            return r;
        }
        const struct timespec pause = {.tv_nsec = RETRY_NS};
        nanosleep(&pause, NULL);
    }
}
