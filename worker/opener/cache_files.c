#include "worker/opener/cache_files.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/format.h"
#include "base/links.h"
#include "base/owner.h"
#include "ipc/cache_area.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 64u /* of a tenant, device and driver; the longest unused go first */
#define MOST_BYTES (UINT64_C(256) << 20)
#define GROUP      16u /* characters with which the names of such files begin */
#define TRIES      16  /* attempts to find a free name for a temporary file */
#define IN_FLAGS   (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* Writes the name of the call that failed, for the log. Keeps errno. */
static int failed(char *what, size_t size, const char *call) {
    const int error = errno != 0 ? errno : EIO;
    bhi_format(what, size, "%s", call);
    return -error;
}

static void name_of(const struct bhi_cache_file *file, char out[80]) {
    for (size_t i = 0; i < sizeof file->identity; i++) {
        snprintf(out + 2 * i, 3, "%02x", file->identity[i]);
    }
    strcpy(out + 2 * sizeof file->identity, ".cache");
}

static bool read_whole(int fd, void *out, size_t bytes, off_t at) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t n = pread(fd, (char *)out + done, bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n < 0 ? errno : ENODATA;
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool write_whole(int fd, const void *bytes, size_t size, off_t at) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = pwrite(fd, (const char *)bytes + done, size - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

/* Makes a new file under a name that is not in use. */
static int make_temporary(int folder, char out[40]) {
    for (int i = 0; i < TRIES; i++) {
        uint64_t number;
        randombytes_buf(&number, sizeof number);
        snprintf(out, 40, "tmp-%016llx", (unsigned long long)number);
        const int fd = openat(folder, out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                              S_IRUSR | S_IWUSR);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

/* Opens the folder, and |makes| it if it is missing. Returns a descriptor or -errno. The folder must belong to the user, and only
 * the user may be able to write to it, so that others can put nothing there and cannot replace
 * it. */
static int open_folder(const char *path, bool makes, char *what, size_t size) {
    struct stat st;
    char link[PATH_MAX];
    const uid_t user = (uid_t)setfsuid((uid_t)-1);
    BHI_AUTO_FD fd = makes ? bhi_links_make_folder(path, user, link, sizeof link)
                           : bhi_links_open_folder(path, user, link, sizeof link);
    if (fd < 0 && link[0] != '\0') {
        bhi_format(what, size,
                   "on the way to the folder, %.200s is a link of another user in a folder that "
                   "everybody can write: it is not followed",
                   link);
        return fd;
    }
    if (fd < 0) {
        errno = -fd;
        return failed(what, size, makes ? "make the folder" : "open the folder");
    }
    if (fstat(fd, &st) == 0 && st.st_uid == user && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
        return bhi_fd_steal(&fd);
    }
    snprintf(what, size,
             "the folder belongs to user %u with mode %04o; it must belong to user %u, and nobody "
             "else may be able to write to it",
             (unsigned)st.st_uid, (unsigned)st.st_mode & 07777, (unsigned)user);
    return -EPERM;
}

/* Returns the bytes that the worker has left, which the caller frees. Returns NULL if there are
 * none or on failure; *out_error is 0 or -errno. The worker is dead, so the bytes do not change. */
static uint8_t *take_left(const struct bhi_cache_file *file, uint64_t *out_bytes, int *out_error,
                          char *what, size_t size) {
    struct bhi_cache_area header;
    *out_error = 0;
    if (!read_whole(file->area, &header, sizeof header, 0)) {
        *out_error = failed(what, size, "read the worker's memory");
        return NULL;
    }
    const uint64_t stamp = header.stamp, bytes = header.bytes;
    if (stamp == 0 || stamp % 2 != 0 || bytes == 0 || bytes > file->room) {
        return NULL;
    }
    BHI_AUTO_FREE uint8_t *left = malloc(bytes);
    if (!left || !read_whole(file->area, left, bytes, BHI_CACHE_AREA_HEADER)) {
        *out_error = !left ? -ENOMEM : failed(what, size, "read the worker's memory");
        return NULL;
    }
    *out_bytes = bytes;
    return BHI_STEAL(left);
}

/* Returns the number of files whose names begin as |name| does, and their size. |oldest|: the one
 * but |name| that was not used for longest; empty: none. */
static uint32_t look_around(int folder, const char *name, uint64_t *out_bytes, char oldest[80]) {
    BHI_AUTO_DIR *entries = bhi_folder_open(folder, ".");
    struct timespec used = {0};
    uint32_t count = 0;
    *out_bytes = 0;
    oldest[0] = '\0';
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        const size_t length = strlen(entry->d_name);
        struct stat st;
        if (length != strlen(name) || strncmp(entry->d_name, name, GROUP) != 0 ||
            fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        count++;
        *out_bytes += (uint64_t)st.st_size;
        const bool older = st.st_mtim.tv_sec < used.tv_sec ||
                           (st.st_mtim.tv_sec == used.tv_sec && st.st_mtim.tv_nsec < used.tv_nsec);
        if ((!oldest[0] || older) && strcmp(entry->d_name, name) != 0) {
            memcpy(oldest, entry->d_name, length + 1);
            used = st.st_mtim;
        }
    }
    return count;
}

/* The file |name| has been written: removes others of its tenant, device and driver where there are
 * too many. */
static void prune(int folder, const char *name) {
    char oldest[80];
    uint64_t bytes;
    while ((look_around(folder, name, &bytes, oldest) > MOST_FILES || bytes > MOST_BYTES) &&
           oldest[0] && unlinkat(folder, oldest, 0) == 0)
        ;
}

static int write_file(int folder, const struct bhi_cache_file *file, const uint8_t *bytes,
                      size_t count, char *what, size_t size) {
    uint8_t header[BHI_ENVELOPE_HEADER];
    char temporary[40], name[80];
    name_of(file, name);
    bhi_envelope_seal(header, file->identity, bytes, count);
    BHI_AUTO_FD fd = make_temporary(folder, temporary);
    if (fd < 0) {
        return failed(what, size, "create a file");
    }
    int result = 0;
    if (!write_whole(fd, header, sizeof header, 0) ||
        !write_whole(fd, bytes, count, sizeof header)) {
        result = failed(what, size, "write");
    } else if (fsync(fd) != 0) {
        result = failed(what, size, "fsync");
    } else if (renameat(folder, temporary, folder, name) != 0) {
        result = failed(what, size, "rename");
    } else if (!bhi_folder_fsync(folder)) { /* the old file may come back */
        result = failed(what, size, "fsync the folder");
    } else {
        prune(folder, name);
    }
    if (result != 0) {
        (void)unlinkat(folder, temporary, 0);
    }
    return result;
}

int bhi_cache_store(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what,
                    size_t size) {
    int result = 0;
    *out_bytes = 0;
    what[0] = '\0';
    BHI_AUTO_FREE uint8_t *bytes = take_left(file, out_bytes, &result, what, size);
    if (!bytes) {
        return result;
    }
    BHI_AUTO_FD folder = open_folder(file->folder, true, what, size);
    return folder < 0 ? folder : write_file(folder, file, bytes, *out_bytes, what, size);
}

/* Copies the content of the open file |fd| into the area, if it passes the checks. */
static int take_file(const struct bhi_cache_file *file, int fd, uint64_t *out_bytes, char *what,
                     size_t size) {
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return failed(what, size, "fstat");
    }
    if (!S_ISREG(st.st_mode) || st.st_size < 0 ||
        (uint64_t)st.st_size > file->room + BHI_ENVELOPE_HEADER) {
        snprintf(what, size, "it is ignored: its size is out of range");
        return 0;
    }
    const size_t length = (size_t)st.st_size;
    BHI_AUTO_FREE uint8_t *bytes = malloc(length != 0 ? length : 1);
    size_t count = 0;
    if (!bytes) {
        return -ENOMEM;
    }
    if (!read_whole(fd, bytes, length, 0)) {
        return failed(what, size, "read");
    }
    const char *why = bhi_envelope_check(bytes, length, file->identity, &count);
    if (why) {
        bhi_format(what, size, "it is ignored: %s", why);
        return 0;
    }
    const struct bhi_cache_area header = {.bytes = count};
    if (!write_whole(file->area, bytes + BHI_ENVELOPE_HEADER, count, BHI_CACHE_AREA_HEADER) ||
        !write_whole(file->area, &header, sizeof header, 0)) {
        return failed(what, size, "write the worker's memory");
    }
    *out_bytes = count;
    (void)futimens(fd, NULL); /* the longest unused file goes first */
    return 0;
}

int bhi_cache_load(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what,
                   size_t size) {
    *out_bytes = 0;
    what[0] = '\0';
    BHI_AUTO_FD folder = open_folder(file->folder, false, what, size);
    if (folder < 0) {
        what[folder == -ENOENT ? 0 : strlen(what)] = '\0';
        return folder == -ENOENT ? 0 : folder;
    }
    char name[80];
    name_of(file, name);
    BHI_AUTO_FD fd = openat(folder, name, IN_FLAGS);
    if (fd < 0) {
        return errno == ENOENT ? 0 : failed(what, size, "open");
    }
    return take_file(file, fd, out_bytes, what, size);
}
