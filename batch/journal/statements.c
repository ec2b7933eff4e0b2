/* The statements with which the journal writes. */
#include "batch/journal/database.h"
#include "batch/journal/journal.h"

#include <stdarg.h>

/* A started attempt has a row already. If another process started it (it was sealed, or was set
 * aside and taken up again), the start time in the row stays; the new one is 0. */
#define ATTEMPT(column, value, assignment)                                                         \
    "INSERT INTO attempt (job, attempt, started, stream, started_ns, ended_ns, guilty, status, "   \
    "executed, signal, exit_code, worker_pid, reached, kernel_name, kernel_hash, message, "        \
    "blame" column ") "                                                                            \
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?" value ") ON CONFLICT DO UPDATE "   \
    "SET started_ns = CASE excluded.started_ns WHEN 0 THEN started_ns ELSE excluded.started_ns "   \
    "END, "                                                                                        \
    "ended_ns = excluded.ended_ns, guilty = excluded.guilty, status = excluded.status, "           \
    "executed = excluded.executed, signal = excluded.signal, exit_code = excluded.exit_code, "     \
    "worker_pid = excluded.worker_pid, reached = excluded.reached, "                               \
    "kernel_name = excluded.kernel_name, kernel_hash = excluded.kernel_hash, "                     \
    "message = excluded.message, blame = excluded.blame" assignment

#define STARTED(column, value, assignment)                                                         \
    "INSERT INTO attempt (job, attempt, started, stream, started_ns, ended_ns" column ") "         \
    "VALUES (?, ?, 1, ?, ?, 0" value ") ON CONFLICT DO UPDATE SET "                                \
    "stream = excluded.stream, started_ns = excluded.started_ns" assignment

static const char *const statements[BHI_SQL_COUNT] = {
    [BHI_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [BHI_SQL_COMMIT] = "COMMIT",
    [BHI_SQL_JOB] = "INSERT INTO job (number, id, line, priority, retries, submitted_ns, text) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
    [BHI_SQL_DEPENDENCY] = "INSERT INTO dependency (job, needs) VALUES (?, ?)",
    [BHI_SQL_PROGRESS] = "INSERT INTO progress VALUES (?, ?, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0)",
    [BHI_SQL_STARTED] = STARTED(", host", ", ?", ", host = excluded.host"),
    [BHI_SQL_RUNNING] =
        "UPDATE progress SET state = 2, tried = ?2, attempts = ?3, ended_ns = 0, "
        "started_ns = CASE started_ns WHEN 0 THEN ?4 ELSE started_ns END WHERE job = ?1",
    [BHI_SQL_SEALED] = "UPDATE progress SET sealed = 1, outputs = ?2 WHERE job = ?1",
    [BHI_SQL_ATTEMPT] =
        ATTEMPT(", device, host", ", ?, ?", ", device = excluded.device, host = excluded.host"),
    /* For a job that an earlier process sealed: the attempt ended when it was sealed, and this
     * process knows the rest. Records of an old version, which did not write the end with the seal,
     * get it here. */
    [BHI_SQL_FINISHED] =
        "UPDATE attempt SET ended_ns = CASE ended_ns WHEN 0 THEN ?3 ELSE ended_ns END, "
        "guilty = ?4, status = ?5, message = ?6, blame = ?7 WHERE job = ?1 AND attempt = ?2",
    /* A DONE job keeps the marks of its outputs, for --verify. */
    [BHI_SQL_ENDED] = "UPDATE progress SET state = ?2, sealed = 0, "
                      "outputs = CASE ?2 WHEN 3 THEN outputs ELSE '' END, attempts = ?3, "
                      "guilty = ?4, victim = ?5, tried = max(tried, ?6), "
                      "verdict = CASE ?6 WHEN 0 THEN verdict ELSE ?6 END, ended_ns = "
                      "CASE ?8 WHEN 0 THEN ?7 ELSE (SELECT attempt.ended_ns FROM attempt WHERE "
                      "attempt.job = ?1 AND attempt.attempt = ?6) END WHERE job = ?1",
    [BHI_SQL_STATE] = "UPDATE progress SET state = ?2, origin = ?3, ended_ns = ?4 WHERE job = ?1",
    [BHI_SQL_RESUME] = "UPDATE progress SET state = 1, ended_ns = 0 "
                       "WHERE state = 6 OR (state = 2 AND NOT sealed)",
    [BHI_SQL_RETRY] = "UPDATE progress SET state = 0, guilty = 0, victim = 0, origin = NULL, "
                      "ended_ns = 0 WHERE state IN (4, 5)",
    [BHI_SQL_REDO] = "UPDATE progress SET state = 0, sealed = 0, outputs = '', guilty = 0, "
                     "victim = 0, origin = NULL, ended_ns = 0 WHERE job = ?1",
    [BHI_SQL_REPLACE] =
        "UPDATE job SET line = ?2, priority = ?3, retries = ?4, text = ?5 WHERE number = ?1",
    [BHI_SQL_FILE] = "INSERT INTO file (number, path, mark) VALUES (?, ?, ?)",
    [BHI_SQL_UNUSE] = "DELETE FROM used WHERE job = ?",
    [BHI_SQL_USE] = "INSERT INTO used (job, file, attempt) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
};

static bool prepare(struct bhi_journal *journal, enum bhi_sql_statement id, const char *sql,
                    struct bhi_complaint *complaint) {
    sqlite3_finalize(journal->statements[id]);
    journal->statements[id] = NULL;
    const int rc = sqlite3_prepare_v3(journal->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                      &journal->statements[id], NULL);
    return rc == SQLITE_OK || bhi_journal_complain(journal, rc, complaint);
}

/* Needs a table that an older database lacks until the batch goes on. */
static bool needs_files(int id) {
    return id == BHI_SQL_FILE || id == BHI_SQL_UNUSE || id == BHI_SQL_USE;
}

/* Without the newer columns these statements only show whether the other columns exist. */
static const char *sql_of(const struct bhi_journal *journal, int id) {
    if (bhi_journal_is_present(journal)) {
        return statements[id];
    }
    return id == BHI_SQL_ATTEMPT   ? ATTEMPT("", "", "")
           : id == BHI_SQL_STARTED ? STARTED("", "", "")
                                   : statements[id];
}

bool bhi_journal_prepare(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    for (int i = 0; i < BHI_SQL_COUNT; i++) {
        if ((journal->has_files || !needs_files(i)) &&
            !prepare(journal, (enum bhi_sql_statement)i, sql_of(journal, i), complaint)) {
            return false;
        }
    }
    return true;
}

bool bhi_journal_prepare_present(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    for (int i = 0; i < BHI_SQL_COUNT; i++) {
        if ((i == BHI_SQL_ATTEMPT || i == BHI_SQL_STARTED || needs_files(i)) &&
            !prepare(journal, (enum bhi_sql_statement)i, statements[i], complaint)) {
            return false;
        }
    }
    return true;
}

/* Returns true if the statement must change exactly one row. The others end transactions, change all
 * rows in some state, or those of a job that may have none. */
static bool changes_one(enum bhi_sql_statement id) {
    return id != BHI_SQL_BEGIN && id != BHI_SQL_COMMIT && id != BHI_SQL_RESUME &&
           id != BHI_SQL_RETRY && id != BHI_SQL_UNUSE && id != BHI_SQL_USE;
}

int bhi_journal_run(struct bhi_journal *journal, enum bhi_sql_statement id, const char *arguments,
                    ...) {
    sqlite3_stmt *statement = journal->statements[id];
    va_list list;
    int rc = SQLITE_OK;
    va_start(list, arguments);
    for (int i = 1; rc == SQLITE_OK && arguments[i - 1]; i++) {
        switch (arguments[i - 1]) {
        case 'i':
            rc = sqlite3_bind_int64(statement, i, va_arg(list, int64_t));
            break;
        case 't':
            rc = sqlite3_bind_text(statement, i, va_arg(list, const char *), -1, SQLITE_STATIC);
            break;
        case 'b':
            rc = sqlite3_bind_blob(statement, i, va_arg(list, const void *), 32, SQLITE_STATIC);
            break;
        default:
            rc = sqlite3_bind_null(statement, i);
        }
    }
    va_end(list);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_DONE) {
        rc = SQLITE_OK;
    }
    /* If the row is missing, the record of its job would be silently lost. */
    if (rc == SQLITE_OK && changes_one(id) && sqlite3_changes(journal->db) != 1) {
        rc = SQLITE_CORRUPT;
    }
    (void)sqlite3_reset(statement);
    return rc;
}
