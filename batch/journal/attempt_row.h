/* An attempt as it comes out of a database: the journal's own, or the one in which the shards of a
 * batch are put together. */
#ifndef BHI_BATCH_JOURNAL_ATTEMPT_ROW_H
#define BHI_BATCH_JOURNAL_ATTEMPT_ROW_H

#include "batch/journal/journal.h"

#include <sqlite3.h>

/* Columns from this number on are the caller's. */
#define BHI_ATTEMPT_COLUMNS 20

/* A text, "" for NULL. It lives until the next step of the statement. */
const char *bhi_row_text(sqlite3_stmt *row, int column);
/* Columns: job, id, attempt, started, stream, started_ns, ended_ns, guilty, status, executed,
 * signal, exit_code, worker_pid, reached, kernel_name, kernel_hash, message, blame, device, host. */
void bhi_row_attempt(sqlite3_stmt *row, struct bhi_attempt_record *out);

/* Whom a row becomes a record for. */
struct bhi_job_visit {
    bool (*visit)(void *user, const struct bhi_job_record *record);
    void *user;
};
struct bhi_attempt_visit {
    bool (*visit)(void *user, const struct bhi_attempt_record *record);
    void *user;
};

#endif
