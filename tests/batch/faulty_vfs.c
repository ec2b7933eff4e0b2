#include "faulty_vfs.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

struct faulty faulty;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards |faulty| */
static sqlite3_vfs *real;                                 /* SQLite's own */

/* What SQLite does with a kind of file, and what is done in its place. */
static struct kind {
    sqlite3_io_methods outer; /* first: a file leads to it */
    const sqlite3_io_methods *inner;
} kinds[4];

static const sqlite3_io_methods *inner(sqlite3_file *file) {
    return ((const struct kind *)file->pMethods)->inner;
}

/* Counts one that changes something. SQLITE_OK: it may be done. */
static int count(void) {
    int rc = SQLITE_OK;
    pthread_mutex_lock(&mutex);
    faulty.seen++;
    if (faulty.mode != FAULTY_OFF &&
        (faulty.seen == faulty.at || (faulty.mode == FAULTY_FROM && faulty.seen > faulty.at))) {
        faulty.hit = true;
        if (faulty.mode == FAULTY_KILL) {
            kill(getpid(), SIGKILL);
        }
        rc = faulty.code;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int write_file(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at) {
    const int rc = count();
    return rc != SQLITE_OK ? rc : inner(file)->xWrite(file, bytes, size, at);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size) {
    const int rc = count();
    return rc != SQLITE_OK ? rc : inner(file)->xTruncate(file, size);
}

static int sync_file(sqlite3_file *file, int flags) {
    int rc = count();
    pthread_mutex_lock(&mutex);
    faulty.syncs++;
    pthread_mutex_unlock(&mutex);
    if (rc == SQLITE_IOERR_WRITE) {
        rc = SQLITE_IOERR_FSYNC;
    }
    return rc != SQLITE_OK ? rc : inner(file)->xSync(file, flags);
}

static int shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out) {
    const int rc = extend ? count() : SQLITE_OK;
    return rc != SQLITE_OK ? rc : inner(file)->xShmMap(file, page, size, extend, out);
}

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                     int *out_flags) {
    const int rc = real->xOpen(vfs, name, file, flags, out_flags);
    struct kind *kind = kinds;
    if (!file->pMethods) {
        return rc;
    }
    pthread_mutex_lock(&mutex);
    while (kind->inner && kind->inner != file->pMethods) {
        if (++kind == kinds + sizeof kinds / sizeof kinds[0]) {
            abort();
        }
    }
    if (!kind->inner) {
        kind->inner = file->pMethods;
        kind->outer = *kind->inner;
        kind->outer.iVersion = 2; /* no pages of the file are mapped */
        kind->outer.xWrite = write_file;
        kind->outer.xTruncate = truncate_file;
        kind->outer.xSync = sync_file;
        kind->outer.xShmMap = shm_map;
    }
    pthread_mutex_unlock(&mutex);
    file->pMethods = &kind->outer;
    return rc;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync) {
    const int rc = count();
    return rc != SQLITE_OK ? rc : real->xDelete(vfs, name, sync);
}

void faulty_set_up(void) {
    static sqlite3_vfs vfs;
    real = sqlite3_vfs_find(NULL);
    if (!real) {
        abort();
    }
    vfs = *real;
    vfs.zName = "faulty";
    vfs.xOpen = open_file;
    vfs.xDelete = delete_file;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) {
        abort();
    }
}
