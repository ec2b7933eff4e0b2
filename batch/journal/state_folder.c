#include "batch/journal/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "batch/journal/schema.h"
#include "tool/place.h"

/* Complains about errno. */
static bool refuse_open(const char *path, bool *out_is_none, struct bhi_complaint *complaint) {
    if (errno == ENOTDIR || errno == ELOOP) {
        *out_is_none = true;
        return bhi_refuse(complaint, "%.600s is not a folder: give another one (--state)", path);
    }
    return bhi_refuse(complaint, "%.600s cannot be opened: %s", path, strerror(errno));
}

/* The folder's name is durable only after a sync of the folder that contains it. One that is there may
 * be of a process that was killed before that. */
static int make(const struct bhi_place *place, const char *path, struct bhi_complaint *complaint) {
    const int fd =
        openat(place->folder, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (mkdirat(place->folder, place->name, 0700) == 0 || errno == EEXIST) {
            return make(place, path, complaint);
        }
        bhi_refuse(complaint, "%.600s cannot be made: %s", path, strerror(errno));
    } else if (fd >= 0 && !bhi_folder_fsync(place->folder)) {
        bhi_refuse(complaint, "%.600s: its folder cannot be written to disk (fsync): %s", path,
                   strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

/* Opens |path| without slashes at its end: a slash requires a folder, which may not exist yet. */
static int open_or_make(const char *path, bool *out_is_none, struct bhi_complaint *complaint) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct bhi_place place;
    struct bhi_complaint why;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    char *name = strndup(path, length);
    int fd = -1;
    complaint->text[0] = '\0';
    if (!name) {
        bhi_refuse(complaint, "out of memory");
        return -1;
    }
    if (bhi_place_find(name, &place, &why)) {
        fd = make(&place, path, complaint);
        if (fd < 0 && !complaint->text[0]) {
            refuse_open(path, out_is_none, complaint);
        }
    } else if (place.error == EISDIR) { /* "/", ".", "..": these exist and are no links */
        fd = open(path, flags);
        if (fd < 0) {
            refuse_open(path, out_is_none, complaint);
        }
    } else if (place.error == EACCES) {
        bhi_refuse(complaint, "%.300s: %.700s", path, why.text);
    } else {
        bhi_refuse(complaint, "%.600s cannot be made: %s", path, strerror(place.error));
    }
    bhi_place_close(&place);
    free(name);
    return fd;
}

static bool check_files(int fd, const char *path, struct bhi_complaint *complaint) {
    static const char *const names[] = {BHI_JOURNAL_LOCK, BHI_JOURNAL_FILE, BHI_JOURNAL_FILE "-wal",
                                        BHI_JOURNAL_FILE "-shm", BHI_JOURNAL_FILE "-journal"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct stat status;
        char file[PATH_MAX];
        if (fstatat(fd, names[i], &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue; /* if it exists, the call that opens it reports the error */
        }
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        if (S_ISLNK(status.st_mode)) {
            return bhi_refuse(complaint,
                              "%.600s is a link: a batch's state has none; move it away, or give "
                              "another folder (--state)",
                              file);
        }
        if (!bhi_place_is_ours(&status, file, complaint)) {
            return false;
        }
    }
    return true;
}

/* Returns the path that the descriptor refers to. */
static char *real_path(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) {
        return NULL;
    }
    path[length] = '\0';
    return strdup(path);
}

bool bhi_state_folder_open(const char *path, struct bhi_state_folder *out_folder,
                           struct bhi_complaint *complaint) {
    struct stat status;
    *out_folder = (struct bhi_state_folder){.fd = -1};
    out_folder->fd = open_or_make(path, &out_folder->is_none, complaint);
    if (out_folder->fd < 0) {
        return false;
    }
    if (fstat(out_folder->fd, &status) != 0) {
        return bhi_refuse(complaint, "%.600s: %s", path, strerror(errno));
    }
    if (!bhi_place_is_ours(&status, path, complaint) ||
        !check_files(out_folder->fd, path, complaint)) {
        return false;
    }
    out_folder->real = real_path(out_folder->fd);
    return out_folder->real
               ? bhi_state_folder_check(out_folder, path, complaint)
               : bhi_refuse(complaint, "%.600s: its path cannot be read from /proc: %s", path,
                            strerror(errno));
}

bool bhi_state_folder_check(const struct bhi_state_folder *folder, const char *path,
                            struct bhi_complaint *complaint) {
    struct stat held, named;
    if (fstat(folder->fd, &held) == 0 && lstat(folder->real, &named) == 0 &&
        held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
        return true;
    }
    return bhi_refuse(complaint, "%.600s was moved or replaced while it was opened", path);
}

bool bhi_state_folder_sync(const struct bhi_state_folder *folder, const char *path,
                           struct bhi_complaint *complaint) {
    return fsync(folder->fd) == 0 || bhi_refuse(complaint, "%.600s: %s", path, strerror(errno));
}

void bhi_state_folder_close(struct bhi_state_folder *folder) {
    if (folder->fd >= 0) {
        close(folder->fd);
    }
    free(folder->real);
    *folder = (struct bhi_state_folder){.fd = -1};
}
