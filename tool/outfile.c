#include "tool/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/limits.h"
#include "base/links.h"
#include "tool/interrupt.h"
#include "tool/place.h"

/* Refuses with the text of errno after |before|. */
static bool refuse_errno(struct bhi_outfile *file, struct bhi_complaint *complaint,
                         const char *before) {
    char limit[BHI_LIMIT_TEXT];
    file->error = errno;
    return bhi_refuse(complaint, "%s: %s%s", before, strerror(file->error),
                      bhi_limit_named(file->error, limit));
}

/* Sets the temporary's name: the planned one, or a hidden random name. It is in the target's
 * folder. */
static bool name_temporary(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    uint64_t random;
    if (file->planned[0]) {
        memcpy(file->temporary, file->planned, sizeof file->temporary);
        return true;
    }
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return refuse_errno(file, complaint, "getrandom");
    }
    snprintf(file->temporary, sizeof file->temporary, ".bulkhead-%016llx.tmp",
             (unsigned long long)random);
    return true;
}

/* Resolves symbolic links, so that the link's target is replaced and not the link. */
static char *resolve(const char *path) {
    char *real = realpath(path, NULL);
    if (real || errno != ENOENT) {
        return real;
    }
    /* |path| does not exist or is a dangling link. The target of a dangling link is the file to
     * create. */
    char link[PATH_MAX];
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0) {
        return strdup(path);
    }
    errno = ENOENT; /* callers take ENOENT to mean a dangling link */
    return NULL;
}

/* Finds the folder of |path|'s target, and the target's name in that folder. */
static bool open_target_folder(struct bhi_outfile *file, const char *path,
                               struct bhi_complaint *complaint) {
    struct bhi_place place;
    struct stat status;
    char *target = resolve(path);
    if (!target) {
        file->error = errno;
        return bhi_refuse(complaint, "cannot be written: %s",
                          file->error == ENOENT
                              ? "it is a symbolic link whose target does not exist"
                              : strerror(file->error));
    }
    free(target);
    const bool good = bhi_place_find(path, &place, complaint);
    file->error = place.error;
    file->folder = place.folder;
    file->name = place.name;
    if (!good) {
        return false;
    }
    if (fstat(file->folder, &status) != 0) {
        return refuse_errno(file, complaint, "its folder cannot be opened");
    }
    file->folder_device = status.st_dev;
    file->folder_inode = status.st_ino;
    return true;
}

static bool open_temporary(struct bhi_outfile *file, uint64_t size,
                           struct bhi_complaint *complaint) {
    struct stat old;
    bool exists = fstatat(file->folder, file->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && faccessat(file->folder, file->name, W_OK, AT_EACCESS) != 0) {
        return refuse_errno(file, complaint, "cannot be written");
    }

    file->fd = openat(file->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        if (!name_temporary(file, complaint)) {
            return false;
        }
        if (file->planned[0]) {
            (void)unlinkat(file->folder, file->temporary, 0); /* left by an earlier attempt */
        }
        file->fd = openat(file->folder, file->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (file->fd < 0) {
            file->temporary[0] = 0;
        }
    }
    if (file->fd < 0) {
        return refuse_errno(file, complaint, "cannot be written");
    }
    /* A replaced file keeps its mode, as if it had been written in place. The mode of another
     * user's file is not copied: it may be open to everybody. */
    if (exists && old.st_uid == geteuid() && fchmod(file->fd, old.st_mode & 0777) != 0) {
        return refuse_errno(file, complaint, "cannot be written");
    }
    if (size > INT64_MAX) {
        errno = EFBIG;
        return refuse_errno(file, complaint, "cannot be written");
    }
    /* Reserves disk space; KEEP_SIZE leaves the file's size alone. If the file system cannot
     * reserve, a full disk shows when the file is written. */
    if (size > 0 && fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) != 0 &&
        (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) {
        char before[64];
        snprintf(before, sizeof before, "%llu bytes cannot be written", (unsigned long long)size);
        return refuse_errno(file, complaint, before);
    }
    return true;
}

static bool open_stdout(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    file->kind = BHI_OUTFILE_STREAM;
    file->is_stdout = true;
    file->fd = STDOUT_FILENO;
    int flags = fcntl(file->fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
        return bhi_refuse(complaint, "standard output cannot be written: %s", strerror(EBADF));
    }
    if (isatty(file->fd)) {
        return bhi_refuse(complaint, "standard output is a terminal: redirect it, or name a file");
    }
    return true;
}

/* Opens a device, a FIFO, or a link to a descriptor of this process (/dev/stdout, /dev/fd/N). Such
 * a link in /proc works even if its file was deleted. */
static bool open_stream(struct bhi_outfile *file, const char *path,
                        struct bhi_complaint *complaint) {
    struct bhi_place place;
    struct stat status;
    if (!bhi_place_find(path, &place, complaint)) {
        file->error = place.error;
        return false;
    }
    file->kind = BHI_OUTFILE_STREAM;
    if (fstatat(place.folder, place.name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else if (bhi_link_is_planted(place.folder, &status, geteuid())) {
        errno = EACCES; /* as the kernel does with fs.protected_fifos */
    } else {
        file->fd = openat(place.folder, place.name, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
    }
    const int error = errno;
    bhi_place_close(&place);
    if (file->fd >= 0) {
        return true;
    }
    return bhi_refuse(complaint, "cannot be written: %s", strerror(error));
}

static bool open_target(struct bhi_outfile *file, const char *path, uint64_t size,
                        struct bhi_complaint *complaint) {
    struct stat status;
    if (!strcmp(path, "-")) {
        return open_stdout(file, complaint);
    }
    if (!*path) {
        return bhi_refuse(complaint, "the file name is empty");
    }
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        if (S_ISDIR(status.st_mode)) {
            return bhi_refuse(complaint, "is a directory: name a file in it");
        }
        return open_stream(file, path, complaint);
    }
    return open_target_folder(file, path, complaint) && open_temporary(file, size, complaint);
}

bool bhi_outfile_is_stdout(const char *path) {
    struct stat file, output;
    if (strcmp(path, "-") == 0) {
        return true;
    }
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &output) == 0 &&
           file.st_dev == output.st_dev && file.st_ino == output.st_ino &&
           !(S_ISCHR(file.st_mode) && file.st_rdev == makedev(1, 3));
}

bool bhi_outfile_open(const char *path, uint64_t size, struct bhi_outfile *out_file,
                      struct bhi_complaint *complaint) {
    *out_file = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
    if (open_target(out_file, path, size, complaint)) {
        return true;
    }
    bhi_outfile_abandon(out_file);
    return false;
}

/* Finds the target's folder and sets the temporary's name. */
static bool open_place(struct bhi_outfile *file, const char *path, const char *temporary,
                       struct bhi_complaint *complaint) {
    struct stat status;
    if (snprintf(file->planned, sizeof file->planned, "%s", temporary) >=
        (int)sizeof file->planned) {
        file->error = ENAMETOOLONG;
        return bhi_refuse(complaint,
                          "the file name is too long to add a suffix for the temporary file");
    }
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        file->error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        return bhi_refuse(complaint, "not a regular file");
    }
    return open_target_folder(file, path, complaint);
}

static bool begin_hash(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    file->hash = bhi_content_hash_begin();
    file->error = file->hash ? 0 : ENOMEM;
    return file->hash || bhi_refuse_memory(complaint);
}

bool bhi_outfile_open_named(const char *path, const char *temporary, uint64_t size,
                            struct bhi_outfile *out_file, struct bhi_complaint *complaint) {
    *out_file = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
    if (open_place(out_file, path, temporary, complaint) &&
        open_temporary(out_file, size, complaint) && begin_hash(out_file, complaint)) {
        return true;
    }
    bhi_outfile_abandon(out_file);
    return false;
}

bool bhi_outfile_adopt(const char *path, const char *temporary, struct bhi_outfile *out_file,
                       struct bhi_complaint *complaint) {
    *out_file = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
    if (open_place(out_file, path, temporary, complaint)) {
        return name_temporary(out_file, complaint);
    }
    bhi_outfile_abandon(out_file);
    return false;
}

bool bhi_outfile_same(const struct bhi_outfile *a, const struct bhi_outfile *b) {
    if (a->is_stdout || b->is_stdout) {
        return a->is_stdout && b->is_stdout;
    }
    if (a->kind != BHI_OUTFILE_REPLACE || b->kind != BHI_OUTFILE_REPLACE) {
        return false;
    }
    return a->folder_device == b->folder_device && a->folder_inode == b->folder_inode &&
           !strcmp(a->name, b->name);
}

static bool write_fully(struct bhi_outfile *file, const void *bytes, uint64_t size,
                        struct bhi_complaint *complaint) {
    const uint8_t *at = bytes;
    while (size > 0) {
        ssize_t n = write(file->fd, at, size > (1u << 30) ? 1u << 30 : (size_t)size);
        /* A file with a planned name belongs to a batch, which stops between files and not in one.
         */
        if (n < 0 && errno == EINTR && (file->planned[0] || !bhi_interrupt_signal())) {
            continue;
        }
        if (n < 0) {
            return refuse_errno(file, complaint, "cannot be written");
        }
        if (file->hash) {
            bhi_content_hash_add(file->hash, at, (size_t)n);
        }
        at += n;
        size -= (uint64_t)n;
    }
    return true;
}

bool bhi_outfile_append(struct bhi_outfile *file, const void *bytes, uint64_t size,
                        struct bhi_complaint *complaint) {
    return write_fully(file, bytes, size, complaint);
}

bool bhi_outfile_write(struct bhi_outfile *file, const void *header, size_t header_size,
                       const void *data, uint64_t data_size, struct bhi_complaint *complaint) {
    file->header = header;
    file->header_size = header_size;
    file->data = data;
    file->data_size = data_size;
    if (file->kind == BHI_OUTFILE_STREAM) {
        return true;
    }
    return write_fully(file, header, header_size, complaint) &&
           write_fully(file, data, data_size, complaint);
}

/* Links a file that has no name yet under its temporary name. */
static bool link_temporary(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    char path[64];
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file->fd);
    if (!name_temporary(file, complaint)) {
        return false;
    }
    int failed = linkat(AT_FDCWD, path, file->folder, file->temporary, AT_SYMLINK_FOLLOW);
    if (failed && errno == EEXIST && file->planned[0]) { /* left by an earlier attempt */
        (void)unlinkat(file->folder, file->temporary, 0);
        failed = linkat(AT_FDCWD, path, file->folder, file->temporary, AT_SYMLINK_FOLLOW);
    }
    if (!failed) {
        return true;
    }
    file->temporary[0] = 0;
    return refuse_errno(file, complaint, "cannot be written: linkat");
}

static struct bhi_outfile_mark mark_of(const struct stat *status) {
    return (struct bhi_outfile_mark){.size = (uint64_t)status->st_size,
                                     .modified_ns = (uint64_t)status->st_mtim.tv_sec * 1000000000u +
                                                    (uint64_t)status->st_mtim.tv_nsec};
}

static bool same_mark(const struct bhi_outfile_mark *a, const struct bhi_outfile_mark *b) {
    return a->size == b->size && a->modified_ns == b->modified_ns;
}

/* Makes the new file's mtime differ from the old file's if both have the same size and mtime: a
 * file system's clock ticks only every few milliseconds. Adds 1 ns, or 2 s if the file system does
 * not keep nanoseconds. */
static void tell_apart(struct bhi_outfile *file) {
    static const struct timespec steps[] = {{.tv_nsec = 1}, {.tv_sec = 2}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct stat mine, old;
        if (fstat(file->fd, &mine) != 0 || fstatat(file->folder, file->name, &old, 0) != 0) {
            return;
        }
        const struct bhi_outfile_mark mark = mark_of(&mine), other = mark_of(&old);
        if (!same_mark(&mark, &other)) {
            return;
        }
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mine.st_mtim};
        times[1].tv_sec += steps[i].tv_sec;
        times[1].tv_nsec += steps[i].tv_nsec;
        if (times[1].tv_nsec >= 1000000000) {
            times[1].tv_nsec -= 1000000000;
            times[1].tv_sec++;
        }
        (void)futimens(file->fd, times);
    }
}

bool bhi_outfile_has(struct bhi_outfile *file, bool placed, const struct bhi_outfile_mark *mark) {
    struct stat status;
    file->error = 0;
    if (fstatat(file->folder, placed ? file->name : file->temporary, &status,
                AT_SYMLINK_NOFOLLOW) != 0) {
        file->error = errno;
        return false;
    }
    const struct bhi_outfile_mark found = mark_of(&status);
    return S_ISREG(status.st_mode) && same_mark(&found, mark);
}

enum bhi_outfile_content bhi_outfile_compare(struct bhi_outfile *file,
                                             const struct bhi_outfile_mark *mark) {
    uint8_t hash[BHI_CONTENT_HASH];
    struct stat status;
    BHI_AUTO_FD fd =
        openat(file->folder, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    file->error = fd < 0 || fstat(fd, &status) != 0 ? errno : 0;
    bool equal = !file->error && S_ISREG(status.st_mode) && (uint64_t)status.st_size == mark->size;
    if (equal) { /* as far as size and time tell */
        file->error = bhi_content_hash_of(fd, hash);
        equal = !file->error && !memcmp(hash, mark->hash, sizeof hash);
    }
    return file->error ? BHI_OUTFILE_UNREAD : equal ? BHI_OUTFILE_EQUAL : BHI_OUTFILE_OTHER;
}

bool bhi_outfile_seal(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    struct stat status;
    if (file->kind == BHI_OUTFILE_STREAM) {
        return true;
    }
    /* Links the file under its planned name before fsync: on many file systems one fsync then
     * covers content and name. A file with a random name is linked after fsync, since a crash would
     * leave it behind. */
    if (file->planned[0] && !file->temporary[0] && !link_temporary(file, complaint)) {
        return false;
    }
    if (file->planned[0]) {
        tell_apart(file);
    }
    if (fsync(file->fd) != 0) {
        return refuse_errno(file, complaint, "cannot be written to disk (fsync)");
    }
    /* Asks only now: a file server may set another time than the local clock. */
    if (file->planned[0] && fstat(file->fd, &status) != 0) {
        return refuse_errno(file, complaint, "fstat");
    }
    if (file->planned[0]) {
        file->mark = mark_of(&status);
        bhi_content_hash_end(file->hash, file->mark.hash);
        file->mark.hashed = true;
        file->hash = NULL;
    }
    return file->temporary[0] || link_temporary(file, complaint);
}

void bhi_outfile_close(struct bhi_outfile *file) {
    if (file->fd >= 0 && !file->is_stdout) {
        close(file->fd);
    }
    file->fd = -1;
}

bool bhi_outfile_rename(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    if (renameat(file->folder, file->temporary, file->folder, file->name) != 0) {
        return refuse_errno(file, complaint, "rename");
    }
    file->temporary[0] = 0;
    return true;
}

bool bhi_outfile_sync_folder(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    if (!bhi_folder_fsync(file->folder)) {
        return refuse_errno(file, complaint, "its folder cannot be written to disk (fsync)");
    }
    return true;
}

bool bhi_outfile_commit(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    if (file->kind == BHI_OUTFILE_STREAM) {
        return write_fully(file, file->header, file->header_size, complaint) &&
               write_fully(file, file->data, file->data_size, complaint);
    }
    return bhi_outfile_rename(file, complaint) && bhi_outfile_sync_folder(file, complaint);
}

void bhi_outfile_abandon(struct bhi_outfile *file) {
    if (file->temporary[0] && file->folder >= 0) {
        unlinkat(file->folder, file->temporary, 0);
    }
    if (file->fd >= 0 && !file->is_stdout) {
        close(file->fd);
    }
    if (file->folder >= 0) {
        close(file->folder);
    }
    free(file->name);
    bhi_content_hash_end(file->hash, NULL);
    const int error = file->error;
    *file = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
    file->error = error;
}

bool bhi_outfile_put(int folder, const char *name, const void *text, size_t size, mode_t mode,
                     struct bhi_complaint *complaint) {
    struct bhi_outfile file = BHI_OUTFILE_CLOSED;
    file.name = strdup(name);
    file.folder = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    bool good = file.name && file.folder >= 0 ? open_temporary(&file, size, complaint)
                                              : refuse_errno(&file, complaint, "cannot be written");
    if (good && fchmod(file.fd, mode) != 0) {
        good = refuse_errno(&file, complaint, "cannot be written");
    }
    good = good && bhi_outfile_write(&file, NULL, 0, text, size, complaint) &&
           bhi_outfile_seal(&file, complaint) && bhi_outfile_commit(&file, complaint);
    bhi_outfile_abandon(&file);
    return good;
}
