#include "batch/journal/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "batch/journal/header.h"
#include "batch/journal/schema.h"
#include "tool/clock.h"
#include "tool/interrupt.h"

/* Comes before the pid in the lock file once the database's file has had jobs. Jobs are never
 * deleted: a marked folder without jobs is not new, but has lost them. */
static const char used[] = "used ";
enum { USED = sizeof used - 1 };

static bool is_used(int lock_fd) {
    char text[USED];
    return pread(lock_fd, text, USED, 0) == USED && !memcmp(text, used, USED);
}

static struct bhi_lock_signature read_signature(int fd) {
    struct bhi_lock_signature signature = {.pid = ""};
    char text[sizeof signature.pid + BHI_HOST_NAME] = "";
    const ssize_t length = pread(fd, text, sizeof text - 1, is_used(fd) ? USED : 0);
    text[length > 0 ? length : 0] = '\0';
    const size_t digits = strspn(text, "0123456789");
    if (digits && digits < sizeof signature.pid) {
        memcpy(signature.pid, text, digits);
    }
    if (*signature.pid && text[digits] == ' ') {
        snprintf(signature.host, sizeof signature.host, "%.*s",
                 (int)bhi_host_span(text + digits + 1), text + digits + 1);
    }
    return signature;
}

struct bhi_lock_signature bhi_lock_read(int folder) {
    struct bhi_lock_signature signature = {.pid = ""};
    const int fd =
        openat(folder, BHI_JOURNAL_LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) {
        signature = read_signature(fd);
        close(fd);
    }
    return signature;
}

static bool complain_held(struct bhi_lock *lock, struct bhi_complaint *complaint) {
    const struct bhi_lock_signature signature = read_signature(lock->fd);
    char here[BHI_HOST_NAME];
    const bool elsewhere = *signature.host && strcmp(signature.host, bhi_host_name(here)) != 0;
    lock->busy = true;
    return bhi_refuse(complaint,
                      "%.600s is in use by another process%s%s%s%s: wait for its end, or give "
                      "another folder (--state)",
                      lock->path, *signature.pid ? ", pid " : "", signature.pid,
                      elsewhere ? " on " : "", elsewhere ? signature.host : "");
}

bool bhi_lock_is_missing(int error) {
    return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP;
}

bool bhi_lock_refuse_missing(const char *folder, int error, struct bhi_complaint *complaint) {
    return bhi_refuse(complaint,
                      "%.600s: this file system has no locks (%s): give a folder on another one "
                      "(--state)",
                      folder, strerror(error));
}

/* SQLite has locks of its own kind on the database; without them it says that another program has
 * it. Returns the errno with which they fail, or 0. */
static int try_records(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(fd, F_GETLK, &lock) == 0 ? 0 : errno;
}

/* *out_made: this call has made the file. */
static bool open_lock(struct bhi_lock *lock, const char *path, bool *out_made,
                      struct bhi_complaint *complaint) {
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    struct stat status;
    *out_made = false;

    lock->fd = openat(lock->folder, BHI_JOURNAL_LOCK, flags);
    if (lock->fd < 0 && errno == ENOENT) {
        if (!bhi_header_peek(lock->folder, lock->database, complaint)) {
            return false;
        }
        lock->fd = openat(lock->folder, BHI_JOURNAL_LOCK, flags | O_CREAT | O_EXCL, 0600);
        *out_made = lock->fd >= 0;
        if (!*out_made && errno == EEXIST) { /* another process was faster */
            lock->fd = openat(lock->folder, BHI_JOURNAL_LOCK, flags);
        }
    }
    if (lock->fd < 0 || fstat(lock->fd, &status) != 0) {
        return bhi_refuse(complaint, "%.600s cannot be opened: %s", path, strerror(errno));
    }
    return S_ISREG(status.st_mode) ||
           bhi_refuse(
               complaint,
               "%.600s is not a regular file: move it away, or give another folder (--state)",
               path);
}

/* A process that makes a lock and is then refused unlinks it. So the locked file must still be the
 * one with this name. */
static bool has_name(const struct bhi_lock *lock) {
    struct stat held, named;
    return fstat(lock->fd, &held) == 0 &&
           fstatat(lock->folder, BHI_JOURNAL_LOCK, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static bool try_lock(struct bhi_lock *lock, const char *path, bool *out_again,
                     struct bhi_complaint *complaint) {
    bool made;
    *out_again = false;
    if (!open_lock(lock, path, &made, complaint)) {
        return false;
    }
    int error = flock(lock->fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error == EWOULDBLOCK) {
        return complain_held(lock, complaint);
    }
    lock->made = made; /* so that a refused folder stays as it was */
    error = error ? error : try_records(lock->fd);
    if (error) {
        return bhi_lock_is_missing(error)
                   ? bhi_lock_refuse_missing(lock->path, error, complaint)
                   : bhi_refuse(complaint, "%.600s cannot be locked: %s", path, strerror(error));
    }
    if (!has_name(lock)) {
        close(lock->fd);
        lock->fd = -1;
        lock->made = false;
        *out_again = true;
        return bhi_refuse(complaint, "%.600s was removed each time it was opened", path);
    }
    return true;
}

/* Reads when the lock was touched. It is opened anew: a network file system answers for an open
 * file from its memory, for up to a minute. */
static bool read_touched(const struct bhi_lock *lock, struct timespec *out_time) {
    struct stat status;
    BHI_AUTO_FD fd = openat(lock->folder, BHI_JOURNAL_LOCK,
                            O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const bool good = fd >= 0 && fstat(fd, &status) == 0;
    if (good) {
        *out_time = status.st_mtim;
    }
    return good;
}

/* On some network file systems a lock excludes only the processes of one machine. So a folder that
 * was not released by a process on another machine is taken only when the lock has not been touched
 * for a while: that process touches it more often (bhi_lock_beat). No clock is read: two times of
 * the same file are compared. */
static bool await_silence(struct bhi_lock *lock, struct bhi_complaint *complaint) {
    const struct bhi_lock_signature signature = read_signature(lock->fd);
    const uint64_t until_ns = bhi_clock_ns() + lock->silence_ns;
    char here[BHI_HOST_NAME];
    struct timespec before, now;
    if (!*signature.host || !strcmp(signature.host, bhi_host_name(here)) ||
        !read_touched(lock, &before)) {
        return true;
    }
    while (bhi_clock_ns() < until_ns && bhi_interrupt_pause(lock->silence_ns / 20)) {
        if (read_touched(lock, &now) &&
            (now.tv_sec != before.tv_sec || now.tv_nsec != before.tv_nsec)) {
            return complain_held(lock, complaint);
        }
    }
    return !bhi_interrupt_signal() || bhi_refuse(complaint, "%.600s: cancelled", lock->path);
}

void bhi_lock_beat(const struct bhi_lock *lock) {
    (void)!futimens(lock->fd, NULL);
}

/* The lock is held until the process ends, however it ends. Child processes do not inherit it. */
bool bhi_lock_take(struct bhi_lock *lock, int folder, const char *name, const char *database,
                   struct bhi_complaint *complaint) {
    enum { TRIES = 100 };
    char *path = NULL;
    bool good = false, again = true;
    lock->folder = folder;
    lock->path = name;
    lock->database = database;
    if (asprintf(&path, "%s/%s", lock->path, BHI_JOURNAL_LOCK) < 0) {
        return bhi_refuse(complaint, "out of memory");
    }
    for (int i = 0; again && i < TRIES; i++) {
        good = try_lock(lock, path, &again, complaint);
    }
    free(path);
    return good && await_silence(lock, complaint) &&
           bhi_header_peek(lock->folder, lock->database, complaint);
}

/* Without a database, the lock file is overwritten only if its content is ours: a pid and a host,
 * or what is left of them after a crash of the machine. */
bool bhi_lock_check(const struct bhi_lock *lock, struct bhi_complaint *complaint) {
    char text[24 + BHI_HOST_NAME];
    const ssize_t length = pread(lock->fd, text, sizeof text - 1, 0);
    bool ours = length >= 0 && (size_t)length < sizeof text - 1;
    text[length > 0 ? length : 0] = '\0';
    const size_t digits = strspn(text, "0123456789");
    const size_t host = digits && text[digits] == ' ' ? 1 + bhi_host_span(text + digits + 1) : 0;
    for (ssize_t i = (ssize_t)(digits + host); ours && i < length; i++) {
        ours = (!host && text[i] >= '0' && text[i] <= '9') || text[i] == '\n' || text[i] == '\0';
    }
    return ours || bhi_refuse(complaint,
                              "%.600s/%s is another program's file: move it away, or give another "
                              "folder (--state)",
                              lock->path, BHI_JOURNAL_LOCK);
}

static void remove_lock(const struct bhi_lock *lock) {
    if (has_name(lock)) {
        unlinkat(lock->folder, BHI_JOURNAL_LOCK, 0);
    }
}

/* Writes the signature behind |mark|: who has the folder; without a host: who had it. */
static bool sign(const struct bhi_lock *lock, const char *mark, bool has) {
    char text[USED + 24 + BHI_HOST_NAME], host[BHI_HOST_NAME];
    const int length = snprintf(text, sizeof text, "%s%ld%s%s\n", mark, (long)getpid(),
                                has ? " " : "", has ? bhi_host_name(host) : "");
    return ftruncate(lock->fd, (off_t)strlen(mark)) == 0 &&
           pwrite(lock->fd, text, (size_t)length, 0) == length;
}

/* It is for the next process, which reads it; errors are ignored: a full disk shows elsewhere. Call
 * this only when the folder is known to be ours: otherwise the file is somebody else's. */
void bhi_lock_sign(struct bhi_lock *lock) {
    lock->has_signed = true;
    (void)!sign(lock, is_used(lock->fd) ? used : "", true);
}

/* Marks the folder as one that has had jobs, durably. */
bool bhi_lock_mark_used(const struct bhi_lock *lock, struct bhi_complaint *complaint) {
    /* A mark that is there may be of a process that was killed before it had synced it. */
    if ((is_used(lock->fd) || sign(lock, used, true)) && fsync(lock->fd) == 0) {
        return fsync(lock->folder) == 0 ||
               bhi_refuse(complaint, "%.600s: %s", lock->path, strerror(errno));
    }
    return bhi_refuse(complaint, "%.600s/%s cannot be written: %s", lock->path, BHI_JOURNAL_LOCK,
                      strerror(errno));
}

bool bhi_lock_is_used(const struct bhi_lock *lock) {
    return is_used(lock->fd);
}

void bhi_lock_release(struct bhi_lock *lock) {
    if (lock->made) {
        remove_lock(lock);
    } else if (lock->has_signed) {
        (void)!sign(lock, is_used(lock->fd) ? used : "", false);
    }
    if (lock->fd >= 0) {
        close(lock->fd);
    }
}
