#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"

/* Makes the temporary's name: hidden, beside the target, not to be guessed. */
static bool name_temporary(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return bhi_refuse(complaint, "getrandom: %s", strerror(errno));
    snprintf(file->temporary, sizeof file->temporary, ".bulkhead-%016llx.tmp",
             (unsigned long long)random);
    return true;
}

/* The target behind symbolic links, so that a link is followed, not replaced. */
static char *resolve(const char *path) {
    char *real = realpath(path, NULL);
    if (real || errno != ENOENT)
        return real;
    /* It does not exist, or is a dangling link: the file to make is where the link points. */
    char link[PATH_MAX];
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0)
        return strdup(path);
    errno = ENOENT; /* what a dangling link is to the caller */
    return NULL;
}

static bool open_folder(struct bhi_outfile *file, const char *target,
                        struct bhi_complaint *complaint) {
    struct stat status;
    const char *slash = strrchr(target, '/');
    const char *base = slash ? slash + 1 : target;
    if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
        return bhi_refuse(complaint, "not a file name");
    file->name = strdup(base);
    char *folder = slash ? strndup(target, (size_t)(slash - target) + 1) : strdup(".");
    if (file->name && folder)
        file->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int saved = errno;
    free(folder);
    if (!file->name || !folder)
        return bhi_refuse(complaint, "out of memory");
    if (file->folder < 0 || fstat(file->folder, &status) != 0)
        return bhi_refuse(complaint, "its folder cannot be opened: %s",
                          strerror(file->folder < 0 ? saved : errno));
    file->folder_device = status.st_dev;
    file->folder_inode = status.st_ino;
    return true;
}

static bool open_temporary(struct bhi_outfile *file, uint64_t size,
                           struct bhi_complaint *complaint) {
    struct stat old;
    bool exists = fstatat(file->folder, file->name, &old, 0) == 0;
    if (exists && faccessat(file->folder, file->name, W_OK, AT_EACCESS) != 0)
        return bhi_refuse(complaint, "cannot be written: %s", strerror(errno));

    file->fd = openat(file->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        if (!name_temporary(file, complaint))
            return false;
        file->fd = openat(file->folder, file->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (file->fd < 0)
            file->temporary[0] = 0;
    }
    if (file->fd < 0)
        return bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
    /* A replaced file keeps its mode, as if it had been written in place. */
    if (exists && fchmod(file->fd, old.st_mode & 0777) != 0)
        return bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
    if (size > INT64_MAX)
        return bhi_refuse(complaint, "cannot be written: %s", strerror(EFBIG));
    /* KEEP_SIZE: room on the disk, no zeros to read. Where it cannot be told, write tells. */
    if (size > 0 && fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) != 0 &&
        (errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
        return bhi_refuse(complaint, "%llu bytes cannot be written: %s", (unsigned long long)size,
                          strerror(errno));
    return true;
}

static bool open_stdout(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    file->kind = BHI_OUTFILE_STREAM;
    file->is_stdout = true;
    file->fd = STDOUT_FILENO;
    int flags = fcntl(file->fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return bhi_refuse(complaint, "standard output cannot be written: %s", strerror(EBADF));
    if (isatty(file->fd))
        return bhi_refuse(complaint, "standard output is a terminal: redirect it, or name a file");
    return true;
}

static bool open_target(struct bhi_outfile *file, const char *path, uint64_t size,
                        struct bhi_complaint *complaint) {
    struct stat status;
    if (!strcmp(path, "-"))
        return open_stdout(file, complaint);
    if (!*path)
        return bhi_refuse(complaint, "the file name is empty");
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        if (S_ISDIR(status.st_mode))
            return bhi_refuse(complaint, "cannot be written: %s", strerror(EISDIR));
        file->kind = BHI_OUTFILE_STREAM;
        file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (file->fd < 0)
            return bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
        return true;
    }
    char *target = resolve(path);
    if (!target)
        return bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
    bool good = open_folder(file, target, complaint) && open_temporary(file, size, complaint);
    free(target);
    return good;
}

bool bhi_outfile_open(const char *path, uint64_t size, struct bhi_outfile *out_file,
                      struct bhi_complaint *complaint) {
    *out_file = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
    if (open_target(out_file, path, size, complaint))
        return true;
    bhi_outfile_abandon(out_file);
    return false;
}

bool bhi_outfile_same(const struct bhi_outfile *a, const struct bhi_outfile *b) {
    if (a->is_stdout || b->is_stdout)
        return a->is_stdout && b->is_stdout;
    if (a->kind != BHI_OUTFILE_REPLACE || b->kind != BHI_OUTFILE_REPLACE)
        return false;
    return a->folder_device == b->folder_device && a->folder_inode == b->folder_inode &&
           !strcmp(a->name, b->name);
}

static bool write_fully(int fd, const void *bytes, uint64_t size, struct bhi_complaint *complaint) {
    const uint8_t *at = bytes;
    while (size > 0) {
        ssize_t n = write(fd, at, size > (1u << 30) ? 1u << 30 : (size_t)size);
        if (n < 0 && errno == EINTR && !bhi_interrupt_signal())
            continue;
        if (n < 0)
            return bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
        at += n;
        size -= (uint64_t)n;
    }
    return true;
}

bool bhi_outfile_write(struct bhi_outfile *file, const void *header, size_t header_size,
                       const void *data, uint64_t data_size, struct bhi_complaint *complaint) {
    file->header = header;
    file->header_size = header_size;
    file->data = data;
    file->data_size = data_size;
    if (file->kind == BHI_OUTFILE_STREAM)
        return true;
    return write_fully(file->fd, header, header_size, complaint) &&
           write_fully(file->fd, data, data_size, complaint);
}

bool bhi_outfile_seal(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    if (file->kind == BHI_OUTFILE_STREAM)
        return true;
    if (fsync(file->fd) != 0)
        return bhi_refuse(complaint, "fsync: %s", strerror(errno));
    if (file->temporary[0])
        return true;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    if (!name_temporary(file, complaint))
        return false;
    if (linkat(AT_FDCWD, path, file->folder, file->temporary, AT_SYMLINK_FOLLOW) != 0) {
        file->temporary[0] = 0;
        return bhi_refuse(complaint, "cannot be written: linkat: %s", strerror(errno));
    }
    return true;
}

bool bhi_outfile_commit(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    if (file->kind == BHI_OUTFILE_STREAM)
        return write_fully(file->fd, file->header, file->header_size, complaint) &&
               write_fully(file->fd, file->data, file->data_size, complaint);
    if (renameat(file->folder, file->temporary, file->folder, file->name) != 0)
        return bhi_refuse(complaint, "rename: %s", strerror(errno));
    file->temporary[0] = 0;
    /* The content is in place by now; some file systems cannot sync a folder (EINVAL). */
    if (fsync(file->folder) != 0 && errno != EINVAL)
        return bhi_refuse(complaint, "fsync of its folder: %s", strerror(errno));
    return true;
}

void bhi_outfile_abandon(struct bhi_outfile *file) {
    if (file->temporary[0] && file->folder >= 0)
        unlinkat(file->folder, file->temporary, 0);
    if (file->fd >= 0 && !file->is_stdout)
        close(file->fd);
    if (file->folder >= 0)
        close(file->folder);
    free(file->name);
    *file = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
}
