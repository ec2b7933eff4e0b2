#include "faulty_vfs.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct faulty faulty;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards |faulty| */
static sqlite3_vfs *real;                                 /* SQLite's own */

struct file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this */
};

static sqlite3_file *inner(sqlite3_file *file) {
    return ((struct file *)file)->real;
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

/* -- files --------------------------------------------------------------------------------------
 */

static int close_file(sqlite3_file *file) {
    return inner(file)->pMethods ? inner(file)->pMethods->xClose(inner(file)) : SQLITE_OK;
}

static int read_file(sqlite3_file *file, void *out, int size, sqlite3_int64 at) {
    return inner(file)->pMethods->xRead(inner(file), out, size, at);
}

static int write_file(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at) {
    const int rc = count();
    return rc != SQLITE_OK ? rc : inner(file)->pMethods->xWrite(inner(file), bytes, size, at);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size) {
    const int rc = count();
    return rc != SQLITE_OK ? rc : inner(file)->pMethods->xTruncate(inner(file), size);
}

static int sync_file(sqlite3_file *file, int flags) {
    int rc = count();
    pthread_mutex_lock(&mutex);
    faulty.syncs++;
    pthread_mutex_unlock(&mutex);
    if (rc == SQLITE_IOERR_WRITE) {
        rc = SQLITE_IOERR_FSYNC;
    }
    return rc != SQLITE_OK ? rc : inner(file)->pMethods->xSync(inner(file), flags);
}

static int size_file(sqlite3_file *file, sqlite3_int64 *out_size) {
    return inner(file)->pMethods->xFileSize(inner(file), out_size);
}

static int lock_file(sqlite3_file *file, int level) {
    return inner(file)->pMethods->xLock(inner(file), level);
}

static int unlock_file(sqlite3_file *file, int level) {
    return inner(file)->pMethods->xUnlock(inner(file), level);
}

static int check_lock(sqlite3_file *file, int *out_held) {
    return inner(file)->pMethods->xCheckReservedLock(inner(file), out_held);
}

static int control_file(sqlite3_file *file, int op, void *argument) {
    return inner(file)->pMethods->xFileControl(inner(file), op, argument);
}

static int sector_size(sqlite3_file *file) {
    return inner(file)->pMethods->xSectorSize(inner(file));
}

static int device_characteristics(sqlite3_file *file) {
    return inner(file)->pMethods->xDeviceCharacteristics(inner(file));
}

static int shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out) {
    const int rc = extend ? count() : SQLITE_OK;
    return rc != SQLITE_OK ? rc
                           : inner(file)->pMethods->xShmMap(inner(file), page, size, extend, out);
}

static int shm_lock(sqlite3_file *file, int offset, int n, int flags) {
    return inner(file)->pMethods->xShmLock(inner(file), offset, n, flags);
}

static void shm_barrier(sqlite3_file *file) {
    inner(file)->pMethods->xShmBarrier(inner(file));
}

static int shm_unmap(sqlite3_file *file, int remove) {
    return inner(file)->pMethods->xShmUnmap(inner(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = size_file,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_lock,
    .xFileControl = control_file,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = device_characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

/* -- the file system ----------------------------------------------------------------------------
 */

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                     int *out_flags) {
    struct file *outer = (struct file *)file;
    outer->real = (sqlite3_file *)(outer + 1);
    const int rc = real->xOpen(real, name, outer->real, flags, out_flags);
    file->pMethods = outer->real->pMethods ? &methods : NULL;
    return rc;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync) {
    const int rc = count();
    return rc != SQLITE_OK ? rc : real->xDelete(real, name, sync);
}

void faulty_set_up(void) {
    static sqlite3_vfs vfs;
    real = sqlite3_vfs_find(NULL);
    if (!real) {
        abort();
    }
    vfs = *real;
    vfs.zName = "faulty";
    vfs.szOsFile += (int)sizeof(struct file);
    vfs.xOpen = open_file;
    vfs.xDelete = delete_file;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) {
        abort();
    }
}
