#include "supervisor/worker/directory_lock.h"
#include "base/fd.h"
#include "base/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define AGE_S 60 /* younger folders are left alone: their hosts may be about to lock them */
/* What one sweep does at most. The next sweep continues. */
#define MOST_LOOKED_AT 16384 /* entries of the parent: one comparison of names each */
#define MOST_EXAMINED  512   /* entries with a name of our kind: some system calls each */
#define MOST_REMOVED   16
#define MOST_INSIDE    1024 /* entries of a folder that is removed */

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int bhi_directory_lock_make(int parent, const char *name, mode_t mode) {
    struct stat made;
    if (mkdirat(parent, name, mode | S_ISVTX) != 0) {
        return -errno;
    }
    /* The host's umask may mask its own rights, and cannot be changed while it has other threads.
     * Nobody else can replace the folder: its parent is safe. */
    if (fstatat(parent, name, &made, AT_SYMLINK_NOFOLLOW) == 0 && (made.st_mode & mode) != mode) {
        (void)!fchmodat(parent, name, mode | S_ISVTX, 0);
    }
    int error;
    BHI_AUTO_FD fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        error = -errno;
        unlinkat(parent, name, AT_REMOVEDIR);
        return error == -ENOENT ? -EEXIST : error;
    }
    if (flock(fd, LOCK_SH | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) { /* a sweep of another process removes it */
            return -EEXIST;
        }
        /* This file system has no locks. Without the sticky bit no other process concludes that
         * this host is dead. */
        if (fchmod(fd, mode) != 0) {
            error = -errno;
            unlinkat(parent, name, AT_REMOVEDIR);
            return error;
        }
    }
    /* The folder may have been removed before it was locked. (A cgroup's link count does not show
     * that.) */
    struct stat ours, there;
    if (fstat(fd, &ours) != 0 || fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
        !same(&ours, &there)) {
        return -EEXIST;
    }
    return bhi_fd_steal(&fd);
}

/* -- whose names ---------------------------------------------------------------------------- */

/* Skips a number of at most |most| digits. Returns NULL if there is none. */
static const char *skip_number(const char *text, size_t most) {
    size_t length = strspn(text, "0123456789");
    return length > 0 && length <= most ? text + length : NULL;
}

/* Returns true for bulkhead-PID-HHHHHHHH, as zygote.c makes it. */
static bool is_folder(const char *name) {
    static const char prefix[] = "bulkhead-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return false;
    }
    const char *rest = skip_number(name + sizeof prefix - 1, 10);
    return rest && rest[0] == '-' && strlen(rest) == 9 && strspn(rest + 1, "0123456789abcdef") == 8;
}

/* Returns true for bulkhead.PID.SERIAL or bulkhead.PID.SERIAL.N, as cgroup.c makes it, if no
 * visible process has the number PID. */
static bool is_dead_cgroup(const char *name) {
    static const char prefix[] = "bulkhead.";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return false;
    }
    const char *pid = name + sizeof prefix - 1, *rest = skip_number(pid, 10);
    if (!rest || rest[0] != '.' || !(rest = skip_number(rest + 1, 20))) {
        return false;
    }
    if (rest[0] == '.' && !(rest = skip_number(rest + 1, 2))) {
        return false;
    }
    long number = strtol(pid, NULL, 10);
    return rest[0] == 0 && number > 0 && number <= INT_MAX && kill((pid_t)number, 0) != 0 &&
           errno == ESRCH;
}

/* -- what is inside ------------------------------------------------------------------------- */

static void unlink_entry(int folder, const char *name) {
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        (void)unlinkat(folder, name, 0); /* a folder stays: this library makes none there */
    }
}

/* Removes the group of a worker. A group with a process in it stays, and so does its parent. */
static void remove_child_group(int folder, const char *name) {
    const char *rest = name[0] == 'w' ? skip_number(name + 1, 20) : NULL;
    if (rest && rest[0] == 0) {
        (void)unlinkat(folder, name, AT_REMOVEDIR);
    }
}

struct kind {
    bool (*is_ours)(const char *name);
    void (*empty)(int folder, const char *name);
};

/* -- sweeping ------------------------------------------------------------------------------- */

/* Returns true if |info| is of a marked and old folder of this user. The root of a mount, which is
 * on another device, is none. */
static bool is_left(const struct stat *info, const struct stat *parent, time_t now) {
    return S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX) != 0 && info->st_uid == geteuid() &&
           info->st_dev == parent->st_dev && info->st_mtim.tv_sec < now - AGE_S;
}

/* Removes the folder if its owner is dead. Returns true if it was removed. */
static bool remove_left(int parent, const struct stat *parent_info, const char *name,
                        const struct kind *kind, time_t now) {
    struct stat before, info;
    if (fstatat(parent, name, &before, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_left(&before, parent_info, now)) {
        return false;
    }
    BHI_AUTO_FD fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    BHI_AUTO_DIR *dir = NULL; /* closed after the folder was removed, and the lock with it */
    if (fd < 0) {
        return false;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 && same(&info, &before) &&
        is_left(&info, parent_info, now)) {
        dir = fdopendir(fd);
    }
    if (!dir) {
        return false;
    }
    const int inside = bhi_fd_steal(&fd); /* the descriptor belongs to the folder stream now */
    const struct dirent *entry;
    for (int i = 0; i < MOST_INSIDE && (entry = readdir(dir)); i++) {
        kind->empty(inside, entry->d_name);
    }
    return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static void sweep(const char *path, const struct kind *kind) {
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    struct stat info;
    BHI_AUTO_DIR *dir = fstat(fd, &info) == 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        return;
    }
    const int parent = bhi_fd_steal(&fd); /* the descriptor belongs to the folder stream now */
    const time_t now = time(NULL);
    int examined = 0, removed = 0;
    const struct dirent *entry;
    for (int i = 0; i < MOST_LOOKED_AT && examined < MOST_EXAMINED && removed < MOST_REMOVED &&
                    (entry = readdir(dir));
         i++) {
        if (kind->is_ours(entry->d_name)) {
            examined++;
            removed += remove_left(parent, &info, entry->d_name, kind, now);
        }
    }
}

void bhi_directory_lock_sweep_folders(const char *parent) {
    static const struct kind folders = {is_folder, unlink_entry};
    sweep(parent, &folders);
}

void bhi_directory_lock_sweep_cgroups(const char *parent) {
    static const struct kind cgroups = {is_dead_cgroup, remove_child_group};
    sweep(parent, &cgroups);
}
