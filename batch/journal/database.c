#include "batch/journal/database.h"
#include "tool/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "batch/journal/schema.h"

enum { BUSY_MS = 5000 }; /* how long another program may hold the database */

/* Comes before the pid in the lock file once the database's file has had jobs. Jobs are never
 * deleted: a marked folder without jobs is not new, but has lost them. */
static const char used[] = "used ";
enum { USED = sizeof used - 1 };

static const char what_to_do[] = "put a copy of it in its place, or start again in another folder "
                                 "(--state); outputs that are in place are complete";

/* -- complaints ---------------------------------------------------------------------------------
 */

static bool is_full(int rc, int system_errno) {
    return (rc & 0xff) == SQLITE_FULL ||
           ((rc & 0xff) == SQLITE_IOERR && (system_errno == ENOSPC || system_errno == EDQUOT));
}

/* Has the database perhaps reached the limit on files? SQLite does not always know: a write that is
 * cut short there has no errno. */
static bool is_limited(int rc, int system_errno) {
    const bool failed = (rc & 0xff) == SQLITE_FULL || (rc & 0xff) == SQLITE_IOERR;
    return failed && (system_errno == EFBIG || system_errno == 0);
}

bool bhi_journal_complain(const struct bhi_journal *journal, int rc,
                          struct bhi_complaint *complaint) {
    const char *path = journal->path;
    const int system_errno = journal->db ? sqlite3_system_errno(journal->db) : 0;
    char limit[BHI_LIMIT_TEXT];
    if (is_limited(rc, system_errno) && *bhi_limit_named(EFBIG, limit)) {
        return bhi_refuse(complaint, "%.600s cannot be written: %s%s, then continue with --resume",
                          path, strerror(EFBIG), limit);
    }
    if (is_full(rc, system_errno)) {
        return bhi_refuse(complaint,
                          "%.600s: the disk is full: free some space, then continue with --resume; "
                          "the record is intact",
                          path);
    }
    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return bhi_refuse(complaint,
                          "%.600s is not the database of a batch, or it is damaged: move it away, "
                          "or give another folder (--state)",
                          path);
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR: /* the statements are constant, so a table or column is missing */
        return bhi_refuse(complaint, "%.600s is damaged: %s", path, what_to_do);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return bhi_refuse(complaint,
                          "%.600s cannot be written: the folder, the file or the file "
                          "system is read-only",
                          path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return bhi_refuse(
            complaint,
            "%.600s is locked by another program: end that program, then continue with --resume",
            path);
    case SQLITE_NOMEM:
        return bhi_refuse(complaint, "%.600s: out of memory", path);
    default:
        return bhi_refuse(complaint, "%.600s: %s%s%s", path, sqlite3_errstr(rc),
                          system_errno ? ": " : "", system_errno ? strerror(system_errno) : "");
    }
}

/* Runs statements that return no rows. */
static bool execute(struct bhi_journal *journal, const char *sql, struct bhi_complaint *complaint) {
    const int rc = sqlite3_exec(journal->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK || bhi_journal_complain(journal, rc, complaint);
}

bool bhi_journal_number(struct bhi_journal *journal, const char *sql, int64_t *out_number,
                        struct bhi_complaint *complaint) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        *out_number = sqlite3_column_int64(statement, 0);
        rc = SQLITE_OK;
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT; /* the query always has a row */
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_OK || bhi_journal_complain(journal, rc, complaint);
}

void bhi_journal_rollback(struct bhi_journal *journal) {
    if (!sqlite3_get_autocommit(journal->db)) {
        sqlite3_exec(journal->db, "ROLLBACK", NULL, NULL, NULL);
    }
}

/* -- the folder ---------------------------------------------------------------------------------
 */

static bool sync_folder(const struct bhi_journal *journal, struct bhi_complaint *complaint) {
    return fsync(journal->state.fd) == 0 ||
           bhi_refuse(complaint, "%.600s: %s", journal->folder, strerror(errno));
}

static bool is_used(int lock_fd) {
    char text[USED];
    return pread(lock_fd, text, USED, 0) == USED && !memcmp(text, used, USED);
}

static bool complain_held(int fd, const char *folder, struct bhi_complaint *complaint) {
    char pid[24] = "";
    const ssize_t length = pread(fd, pid, sizeof pid - 1, is_used(fd) ? USED : 0);
    pid[length > 0 ? length : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return bhi_refuse(complaint,
                      "%.600s is in use by another process%s%s: wait for its end, or give "
                      "another folder (--state)",
                      folder, *pid ? ", pid " : "", pid);
}

static bool check_format(const struct bhi_journal *journal, int64_t application, int64_t version,
                         struct bhi_complaint *complaint) {
    if (application != BHI_JOURNAL_APPLICATION) {
        return bhi_refuse(complaint,
                          "%.600s is another program's database: give another folder (--state)",
                          journal->path);
    }
    if (version != BHI_JOURNAL_VERSION && version != BHI_JOURNAL_VERSION_BEFORE) {
        return bhi_refuse(
            complaint,
            "%.600s was made by another version of bulkhead: it has format %lld, this one reads "
            "%d and %d; continue with that version, or give another folder (--state)",
            journal->path, (long long)version, BHI_JOURNAL_VERSION_BEFORE, BHI_JOURNAL_VERSION);
    }
    return true;
}

static uint32_t load_be32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Offsets in the header of the database's file. */
enum { MAGIC = 16, SCHEMA = 40, VERSION = 60, APPLICATION = 68, HEADER = 100 };

static ssize_t read_header(const struct bhi_journal *journal, uint8_t header[HEADER]) {
    const int fd =
        openat(journal->state.fd, BHI_JOURNAL_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t length = fd >= 0 ? pread(fd, header, HEADER, 0) : 0;
    if (fd >= 0) {
        close(fd);
    }
    return length;
}

/* Checks the header of the database's file, if there is one, before SQLite opens it: so a folder
 * that is not ours stays as it is. */
static bool peek(const struct bhi_journal *journal, struct bhi_complaint *complaint) {
    uint8_t header[HEADER];
    const ssize_t length = read_header(journal, header);
    if (length <= 0) { /* empty; or SQLite reports what is wrong with it */
        return true;
    }
    if (memcmp(header, "SQLite format 3", length < MAGIC ? (size_t)length : MAGIC) != 0) {
        return bhi_journal_complain(journal, SQLITE_NOTADB, complaint);
    }
    if (length < HEADER || !load_be32(header + SCHEMA)) { /* no tables yet */
        return true;
    }
    return check_format(journal, load_be32(header + APPLICATION), load_be32(header + VERSION),
                        complaint);
}

/* *out_made: this call has made the file. */
static bool open_lock(struct bhi_journal *journal, const char *path, bool *out_made,
                      struct bhi_complaint *complaint) {
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    struct stat status;
    *out_made = false;
    const int folder = journal->state.fd;
    journal->lock_fd = openat(folder, BHI_JOURNAL_LOCK, flags);
    if (journal->lock_fd < 0 && errno == ENOENT) {
        if (!peek(journal, complaint)) {
            return false;
        }
        journal->lock_fd = openat(folder, BHI_JOURNAL_LOCK, flags | O_CREAT | O_EXCL, 0600);
        *out_made = journal->lock_fd >= 0;
        if (!*out_made && errno == EEXIST) { /* another process was faster */
            journal->lock_fd = openat(folder, BHI_JOURNAL_LOCK, flags);
        }
    }
    if (journal->lock_fd < 0 || fstat(journal->lock_fd, &status) != 0) {
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
static bool has_name(const struct bhi_journal *journal) {
    struct stat held, named;
    return fstat(journal->lock_fd, &held) == 0 &&
           fstatat(journal->state.fd, BHI_JOURNAL_LOCK, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static bool try_lock(struct bhi_journal *journal, const char *path, bool *out_again,
                     struct bhi_complaint *complaint) {
    bool made;
    *out_again = false;
    if (!open_lock(journal, path, &made, complaint)) {
        return false;
    }
    if (flock(journal->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? complain_held(journal->lock_fd, journal->folder, complaint)
                   : bhi_refuse(complaint, "%.600s cannot be locked: %s", path, strerror(errno));
    }
    if (!has_name(journal)) {
        close(journal->lock_fd);
        journal->lock_fd = -1;
        *out_again = true;
        return bhi_refuse(complaint, "%.600s was removed each time it was opened", path);
    }
    journal->made_lock = made;
    return true;
}

/* The lock is held until the process ends, however it ends. Child processes do not inherit it. */
static bool take_lock(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    enum { TRIES = 100 };
    char *path = NULL;
    bool good = false, again = true;
    if (asprintf(&path, "%s/%s", journal->folder, BHI_JOURNAL_LOCK) < 0) {
        return bhi_refuse(complaint, "out of memory");
    }
    for (int i = 0; again && i < TRIES; i++) {
        good = try_lock(journal, path, &again, complaint);
    }
    free(path);
    return good && peek(journal, complaint);
}

/* Without a database, the lock file is overwritten only if its content is ours: a pid, or what is
 * left of one after a crash of the machine. */
static bool check_lock(const struct bhi_journal *journal, struct bhi_complaint *complaint) {
    char text[24];
    const ssize_t length = pread(journal->lock_fd, text, sizeof text, 0);
    bool ours = length >= 0 && (size_t)length < sizeof text;
    for (ssize_t i = 0; ours && i < length; i++) {
        ours = (text[i] >= '0' && text[i] <= '9') || text[i] == '\n' || text[i] == '\0';
    }
    return ours || bhi_refuse(complaint,
                              "%.600s/%s is another program's file: move it away, or give another "
                              "folder (--state)",
                              journal->folder, BHI_JOURNAL_LOCK);
}

static void remove_lock(const struct bhi_journal *journal) {
    if (has_name(journal)) {
        unlinkat(journal->state.fd, BHI_JOURNAL_LOCK, 0);
    }
}

/* The pid is only for the message of the next process, so errors are ignored: a full disk shows
 * elsewhere. Call this only when the folder is known to be ours: otherwise the file is somebody
 * else's. */
static void sign_lock(const struct bhi_journal *journal) {
    char pid[24];
    const int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    const off_t at = is_used(journal->lock_fd) ? USED : 0;
    (void)!ftruncate(journal->lock_fd, at);
    (void)!pwrite(journal->lock_fd, pid, (size_t)length, at);
}

/* Marks the folder as one that has had jobs, durably. */
static bool mark_used(const struct bhi_journal *journal, struct bhi_complaint *complaint) {
    char text[32];
    const int length = snprintf(text, sizeof text, "%s%ld\n", used, (long)getpid());
    if (is_used(journal->lock_fd)) {
        return true;
    }
    if (pwrite(journal->lock_fd, text, (size_t)length, 0) == length &&
        fsync(journal->lock_fd) == 0) {
        return sync_folder(journal, complaint);
    }
    return bhi_refuse(complaint, "%.600s/%s cannot be written: %s", journal->folder,
                      BHI_JOURNAL_LOCK, strerror(errno));
}

/* -- the database -------------------------------------------------------------------------------
 */

/* Checks that the database is ours and has this version. *out_fresh: it is empty. */
static bool check_database(struct bhi_journal *journal, bool *out_fresh,
                           struct bhi_complaint *complaint) {
    int64_t application, version, tables;
    if (!bhi_journal_number(journal, "SELECT count(*) FROM sqlite_schema", &tables, complaint) ||
        !bhi_journal_number(journal, "PRAGMA application_id", &application, complaint) ||
        !bhi_journal_number(journal, "PRAGMA user_version", &version, complaint)) {
        return false;
    }
    *out_fresh = tables == 0 && application == 0 && version == 0;
    if (*out_fresh) {
        return true;
    }
    return check_format(journal, application, version, complaint);
}

/* FULL: the commit of a transaction returns when its records are on the disk. */
static bool set_up(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(journal->db, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    const char *mode = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    const bool wal = mode && !strcmp(mode, "wal");
    sqlite3_finalize(statement);
    if (rc != SQLITE_ROW) {
        return bhi_journal_complain(journal, rc, complaint);
    }
    if (!wal) {
        return bhi_refuse(complaint,
                          "%.600s: this file system cannot hold a shared write-ahead log: put the "
                          "state on a local disk (--state)",
                          journal->path);
    }
    return execute(journal,
                   "PRAGMA synchronous = FULL;"
                   "PRAGMA journal_size_limit = 67108864;"
                   "PRAGMA trusted_schema = OFF;"
                   "PRAGMA temp_store = MEMORY;",
                   complaint);
}

bool bhi_journal_move_log(struct bhi_journal *journal, bool waits,
                          struct bhi_complaint *complaint) {
    const int mode = waits ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
    int in_log = 0, moved = 0;
    const int rc = sqlite3_wal_checkpoint_v2(journal->db, NULL, mode, &in_log, &moved);
    journal->log_stays = (rc & 0xff) == SQLITE_BUSY || (rc == SQLITE_OK && moved < in_log);
    if (journal->log_stays) {
        return true;
    }
    return rc == SQLITE_OK ? mark_used(journal, complaint)
                           : bhi_journal_complain(journal, rc, complaint);
}

static bool create_tables(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    char pragmas[128];
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             BHI_JOURNAL_APPLICATION, BHI_JOURNAL_VERSION);
    if (execute(journal, "BEGIN IMMEDIATE", complaint) &&
        execute(journal, bhi_journal_schema, complaint) && execute(journal, pragmas, complaint)) {
        return sync_folder(journal, complaint);
    }
    bhi_journal_rollback(journal);
    return false;
}

static bool out_of_memory(struct bhi_complaint *complaint) {
    return bhi_refuse(complaint, "out of memory");
}

/* Writes the batch's only row. It replaces a row that an earlier start left without jobs. */
static bool begin_batch(struct bhi_journal *journal, const char *jobs_path,
                        struct bhi_journal_batch *out_batch, struct bhi_complaint *complaint) {
    static const char sql[] = "INSERT INTO batch VALUES (?, ?, ?, ?)";
    sqlite3_stmt *statement = NULL;
    if (!bhi_journal_batch_make(out_batch, complaint) ||
        !execute(journal, "BEGIN IMMEDIATE; DELETE FROM batch", complaint)) {
        return false;
    }
    int rc = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, out_batch->id, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, out_batch->cwd, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 3, jobs_path, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 4, (int64_t)bhi_clock_calendar_ns());
        rc = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    if (rc == SQLITE_DONE && execute(journal, "COMMIT", complaint)) {
        return true;
    }
    if (rc != SQLITE_DONE) {
        bhi_journal_complain(journal, rc, complaint);
    }
    bhi_journal_rollback(journal);
    return false;
}

static bool read_batch(struct bhi_journal *journal, struct bhi_journal_batch *out_batch,
                       struct bhi_complaint *complaint) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(journal->db, "SELECT id, cwd, jobs_path FROM batch", -1, &statement,
                                NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *id = (const char *)sqlite3_column_text(statement, 0);
        const char *cwd = (const char *)sqlite3_column_text(statement, 1);
        const char *jobs_path = (const char *)sqlite3_column_text(statement, 2);
        if (id && *id && cwd && strspn(id, "0123456789abcdef") == strlen(id) &&
            strlen(id) < sizeof out_batch->id && cwd[0] == '/') {
            strcpy(out_batch->id, id);
            out_batch->cwd = strdup(cwd);
            out_batch->jobs_path = jobs_path ? strdup(jobs_path) : NULL;
            rc = out_batch->cwd && (!jobs_path || out_batch->jobs_path) ? SQLITE_OK : SQLITE_NOMEM;
            /* There must be only one row: with two, nobody knows which batch the temporary files
             * belong to. */
            const int next = rc == SQLITE_OK ? sqlite3_step(statement) : SQLITE_DONE;
            if (next != SQLITE_DONE) {
                rc = next == SQLITE_ROW ? SQLITE_CORRUPT : next;
            }
        } else {
            rc = SQLITE_CORRUPT;
        }
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT;
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_OK || bhi_journal_complain(journal, rc, complaint);
}

/* The whole database is checked before it is used. */
static bool check_pages(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(journal->db, "PRAGMA quick_check(1)", -1, &statement, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *answer = (const char *)sqlite3_column_text(statement, 0);
        rc = answer && !strcmp(answer, "ok") ? SQLITE_OK : SQLITE_CORRUPT;
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_OK || bhi_journal_complain(journal, rc, complaint);
}

/* SQLite would use the umask, but only the user may read jobs. SQLite gives its other files the
 * mode of this one. */
static bool make_file(const struct bhi_journal *journal, struct bhi_complaint *complaint) {
    const int fd = openat(journal->state.fd, BHI_JOURNAL_FILE,
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return bhi_refuse(complaint, "%.600s cannot be opened: %s", journal->path, strerror(errno));
    }
    close(fd);
    return true;
}

/* Sets whether closing moves the log into the file and deletes the log. The log of a refused folder
 * must stay. */
static void move_log_on_close(struct bhi_journal *journal, bool moves) {
    sqlite3_db_config(journal->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, moves ? 0 : 1, NULL);
}

/* Call it before SQLite opens the database: SQLite makes an empty log, which need not be kept. */
static bool has_log(const struct bhi_journal *journal) {
    struct stat status;
    return fstatat(journal->state.fd, BHI_JOURNAL_FILE "-wal", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_size > 0;
}

static bool complain_lost(const struct bhi_journal *journal, struct bhi_complaint *complaint) {
    return bhi_refuse(complaint, "%.600s is damaged: the jobs that were in it are gone; %s",
                      journal->path, what_to_do);
}

/* Call it before SQLite opens the database: SQLite makes missing files, and deletes the log of an
 * empty database. */
static bool check_there(const struct bhi_journal *journal, bool empty,
                        struct bhi_complaint *complaint) {
    uint8_t header[HEADER];
    const bool lost = is_used(journal->lock_fd)
                          ? read_header(journal, header) < HEADER || !load_be32(header + SCHEMA)
                          : empty && has_log(journal);
    return !lost || complain_lost(journal, complaint);
}

static bool open_database(struct bhi_journal *journal, const struct bhi_queue_options *options,
                          struct bhi_journal_batch *out_batch, struct bhi_complaint *complaint) {
    static const char device[] =
        "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'device'";
    int64_t jobs = 0, devices = 0;
    bool fresh;
    struct stat status;
    const bool empty =
        fstatat(journal->state.fd, BHI_JOURNAL_FILE, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        status.st_size == 0;
    if (!check_there(journal, empty, complaint) || (empty && !check_lock(journal, complaint)) ||
        !make_file(journal, complaint)) {
        return false;
    }
    char *path = NULL; /* without links, because SQLite's NOFOLLOW forbids them in the whole path */
    if (asprintf(&path, "%s/%s", journal->state.real, BHI_JOURNAL_FILE) < 0) {
        return out_of_memory(complaint);
    }
    const int rc = sqlite3_open_v2(path, &journal->db,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                       SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
                                   NULL);
    free(path);
    if (rc != SQLITE_OK) {
        return bhi_journal_complain(journal, rc, complaint);
    }
    if (!bhi_state_folder_check(&journal->state, journal->folder, complaint)) {
        return false;
    }
    sqlite3_extended_result_codes(journal->db, 1);
    sqlite3_busy_timeout(journal->db, BUSY_MS);
    move_log_on_close(journal, !has_log(journal));
    if (!check_database(journal, &fresh, complaint)) {
        return false;
    }
    if (fresh && is_used(journal->lock_fd)) {
        return complain_lost(journal, complaint);
    }
    if (fresh && !check_lock(journal, complaint)) {
        return false;
    }
    sign_lock(journal);
    if (!set_up(journal, complaint) ||
        (fresh ? !create_tables(journal, complaint) : !check_pages(journal, complaint)) ||
        !bhi_journal_number(journal, "SELECT count(*) FROM job", &jobs, complaint) ||
        !bhi_journal_number(journal, device, &devices, complaint)) {
        return false;
    }
    journal->has_device = devices;
    if (!jobs && is_used(journal->lock_fd)) {
        return complain_lost(journal, complaint);
    }
    out_batch->jobs = (uint64_t)jobs;
    return jobs > 0 ? read_batch(journal, out_batch, complaint)
                    : begin_batch(journal, options->jobs_path, out_batch, complaint);
}

enum bhi_queue_result bhi_journal_open_database(struct bhi_journal *journal,
                                                const struct bhi_queue_options *options,
                                                struct bhi_journal_batch *out_batch,
                                                struct bhi_complaint *complaint) {
    const bool good = ((journal->folder = strdup(options->folder)) || out_of_memory(complaint)) &&
                      (asprintf(&journal->path, "%s/%s", journal->folder, BHI_JOURNAL_FILE) >= 0 ||
                       out_of_memory(complaint)) &&
                      bhi_state_folder_open(journal->folder, &journal->state, complaint) &&
                      take_lock(journal, complaint) &&
                      open_database(journal, options, out_batch, complaint);
    return good ? BHI_QUEUE_OK : journal->state.is_none ? BHI_QUEUE_BAD_INPUT : BHI_QUEUE_ENVIRON;
}

/* Gives the database the columns that it lacks, and the version. */
static bool upgrade(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    char pragma[48];
    snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d", BHI_JOURNAL_VERSION);
    if (execute(journal, "BEGIN IMMEDIATE", complaint) &&
        (journal->has_device ||
         execute(journal, "ALTER TABLE attempt ADD COLUMN " BHI_JOURNAL_DEVICE, complaint)) &&
        execute(journal, pragma, complaint) && execute(journal, "COMMIT", complaint)) {
        journal->has_device = true;
        return true;
    }
    bhi_journal_rollback(journal);
    return false;
}

bool bhi_journal_accept_database(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    int64_t version;
    if (!bhi_journal_number(journal, "PRAGMA user_version", &version, complaint)) {
        return false;
    }
    if ((version != BHI_JOURNAL_VERSION || !journal->has_device) && !upgrade(journal, complaint)) {
        return false;
    }
    move_log_on_close(journal, true);
    journal->made_lock = false;
    return true;
}

void bhi_journal_close_database(struct bhi_journal *journal) {
    sqlite3_close(journal->db);
    if (journal->made_lock) {
        remove_lock(journal);
    }
    if (journal->lock_fd >= 0) {
        close(journal->lock_fd);
    }
    bhi_state_folder_close(&journal->state);
}
