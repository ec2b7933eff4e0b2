#include "batch/journal/database.h"
#include "tool/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "batch/journal/header.h"
#include "batch/journal/lock.h"
#include "batch/journal/schema.h"

enum { BUSY_MS = 5000 }; /* how long another program may hold the database */

static const char what_to_do[] = "put a copy of it in its place, or start again in another folder "
                                 "(--state); outputs that are in place are complete";

/* -- complaints ------------------------------------------------------------------------------ */

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
        return bhi_refuse(complaint, "%.600s cannot be written: %s%s", path, strerror(EFBIG),
                          limit);
    }
    if (is_full(rc, system_errno)) {
        return bhi_refuse(complaint,
                          "%.600s: the disk is full: free some space; the record is intact", path);
    }
    if ((rc & 0xff) == SQLITE_IOERR && bhi_lock_is_missing(system_errno)) {
        return bhi_lock_refuse_missing(journal->folder, system_errno, complaint);
    }
    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return bhi_header_complain_foreign(path, complaint);
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
        return bhi_refuse(complaint, "%.600s is locked by another program: end that program", path);
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

/* -- the database ---------------------------------------------------------------------------- */

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
    return bhi_header_check(journal->path, application, version, complaint);
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
    journal->lacks_log = !wal;
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
    return rc == SQLITE_OK ? bhi_lock_mark_used(&journal->lock, complaint)
                           : bhi_journal_complain(journal, rc, complaint);
}

static bool create_tables(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    char pragmas[128];
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             BHI_JOURNAL_APPLICATION, BHI_JOURNAL_VERSION);
    if (execute(journal, "BEGIN IMMEDIATE", complaint) &&
        execute(journal, bhi_journal_schema, complaint) && execute(journal, pragmas, complaint)) {
        return true; /* SQLite has synced the folder; and it is synced when the lock is marked */
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
    const bool lost = bhi_lock_is_used(&journal->lock) ? !bhi_header_has_tables(journal->state.fd)
                                                       : empty && has_log(journal);
    return !lost || complain_lost(journal, complaint);
}

/* Did SQLite fail because the file system cannot share memory between processes? */
static bool cannot_share(const struct bhi_journal *journal) {
    const int rc = sqlite3_extended_errcode(journal->db);
    return journal->lacks_log || rc == SQLITE_IOERR_SHMMAP || rc == SQLITE_IOERR_SHMOPEN ||
           rc == SQLITE_IOERR_SHMSIZE;
}

/* |alone|: without shared memory, so that no other program can read meanwhile. */
static bool open_with(struct bhi_journal *journal, bool alone,
                      const struct bhi_queue_options *options, struct bhi_journal_batch *out_batch,
                      struct bhi_complaint *complaint) {
    static const char device[] =
        "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'device'";
    static const char host[] =
        "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'host'";
    static const char files[] = "SELECT count(*) FROM sqlite_schema WHERE name IN ('file', 'used')";
    int64_t jobs = 0, devices = 0, hosts = 0, tables = 0;
    bool fresh;
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
    if (alone && !execute(journal, "PRAGMA locking_mode = EXCLUSIVE", complaint)) {
        return false;
    }
    move_log_on_close(journal, !has_log(journal));
    if (!check_database(journal, &fresh, complaint)) {
        return false;
    }
    if (fresh && bhi_lock_is_used(&journal->lock)) {
        return complain_lost(journal, complaint);
    }
    if (fresh && !bhi_lock_check(&journal->lock, complaint)) {
        return false;
    }
    bhi_lock_sign(&journal->lock);
    if (!set_up(journal, complaint) ||
        (fresh ? !create_tables(journal, complaint) : !check_pages(journal, complaint)) ||
        !bhi_journal_number(journal, "SELECT count(*) FROM job", &jobs, complaint) ||
        !bhi_journal_number(journal, device, &devices, complaint) ||
        !bhi_journal_number(journal, host, &hosts, complaint) ||
        !bhi_journal_number(journal, files, &tables, complaint)) {
        return false;
    }
    journal->has_files = tables == 2;
    journal->has_device = devices;
    journal->has_host = hosts;
    if (!jobs && bhi_lock_is_used(&journal->lock)) {
        return complain_lost(journal, complaint);
    }
    out_batch->jobs = (uint64_t)jobs;
    return jobs > 0 ? read_batch(journal, out_batch, complaint)
                    : begin_batch(journal, options->jobs_path, out_batch, complaint);
}

/* Other programs may read the database while a batch runs, where the file system allows that. */
static bool open_database(struct bhi_journal *journal, const struct bhi_queue_options *options,
                          struct bhi_journal_batch *out_batch, struct bhi_complaint *complaint) {
    struct stat status;
    const bool empty =
        fstatat(journal->state.fd, BHI_JOURNAL_FILE, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        status.st_size == 0;
    if (!check_there(journal, empty, complaint) ||
        (empty && !bhi_lock_check(&journal->lock, complaint)) || !make_file(journal, complaint)) {
        return false;
    }
    if (open_with(journal, false, options, out_batch, complaint)) {
        return true;
    }
    if (!journal->db || !cannot_share(journal)) {
        return false;
    }
    sqlite3_close(journal->db);
    journal->db = NULL;
    return open_with(journal, true, options, out_batch, complaint);
}

enum bhi_queue_result bhi_journal_open_database(struct bhi_journal *journal,
                                                const struct bhi_queue_options *options,
                                                struct bhi_journal_batch *out_batch,
                                                struct bhi_complaint *complaint) {
    const bool good = ((journal->folder = strdup(options->folder)) || out_of_memory(complaint)) &&
                      (asprintf(&journal->path, "%s/%s", journal->folder, BHI_JOURNAL_FILE) >= 0 ||
                       out_of_memory(complaint)) &&
                      bhi_state_folder_open(journal->folder, &journal->state, complaint) &&
                      bhi_lock_take(&journal->lock, journal->state.fd, journal->folder,
                                    journal->path, complaint) &&
                      open_database(journal, options, out_batch, complaint);
    return good                     ? BHI_QUEUE_OK
           : journal->state.is_none ? BHI_QUEUE_BAD_INPUT
           : journal->lock.busy     ? BHI_QUEUE_BUSY
                                    : BHI_QUEUE_ENVIRON;
}

/* Gives the database the columns and tables that it lacks, and the version. */
static bool upgrade(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    char pragma[48];
    snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d", BHI_JOURNAL_VERSION);
    if (execute(journal, "BEGIN IMMEDIATE", complaint) &&
        (journal->has_device ||
         execute(journal, "ALTER TABLE attempt ADD COLUMN " BHI_JOURNAL_DEVICE, complaint)) &&
        (journal->has_host ||
         execute(journal, "ALTER TABLE attempt ADD COLUMN " BHI_JOURNAL_HOST, complaint)) &&
        (journal->has_files || execute(journal, BHI_JOURNAL_FILES, complaint)) &&
        execute(journal, pragma, complaint) && execute(journal, "COMMIT", complaint)) {
        journal->has_device = journal->has_host = journal->has_files = true;
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
    if ((version != BHI_JOURNAL_VERSION || !bhi_journal_is_present(journal)) &&
        !upgrade(journal, complaint)) {
        return false;
    }
    move_log_on_close(journal, true);
    journal->lock.made = false;
    return true;
}

void bhi_journal_close_database(struct bhi_journal *journal) {
    sqlite3_close(journal->db);
    bhi_lock_release(&journal->lock);
    bhi_state_folder_close(&journal->state);
}
