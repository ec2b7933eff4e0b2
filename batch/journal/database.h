/* The journal from inside, for the files that implement it: the database, its thread, its notes. */
#ifndef BHI_BATCH_JOURNAL_DATABASE_H
#define BHI_BATCH_JOURNAL_DATABASE_H

#include <pthread.h>
#include <sqlite3.h>

#include "batch/journal/note.h"
#include "batch/journal/state_folder.h"

enum bhi_sql_statement {
    BHI_SQL_BEGIN,
    BHI_SQL_COMMIT,
    BHI_SQL_JOB,
    BHI_SQL_DEPENDENCY,
    BHI_SQL_PROGRESS,
    BHI_SQL_STARTED,
    BHI_SQL_RUNNING,
    BHI_SQL_SEALED,
    BHI_SQL_ATTEMPT,
    BHI_SQL_FINISHED,
    BHI_SQL_ENDED,
    BHI_SQL_STATE,
    BHI_SQL_RESUME,
    BHI_SQL_RETRY,
    BHI_SQL_REDO,
    BHI_SQL_REPLACE,
    BHI_SQL_COUNT
};

struct bhi_journal {
    char *folder, *path; /* owned; of the state, of the database: as they were given */
    struct bhi_state_folder state;
    int lock_fd;
    bool made_lock; /* it is held, was not there before, and nothing has been accepted yet */

    pthread_mutex_t database; /* held while |db| is used; taken before |mutex| */
    sqlite3 *db;
    bool log_stays; /* another program read what was there before the jobs when they were added */
    sqlite3_stmt *statements[BHI_SQL_COUNT];

    pthread_mutex_t mutex;   /* guards what follows */
    pthread_cond_t wake;     /* the thread: there is something to do (CLOCK_MONOTONIC) */
    pthread_cond_t settled;  /* |written| has grown, or |broken| is set */
    struct bhi_list notes;   /* bhi_note.node: not taken by the thread yet; owned */
    uint64_t due_ns;         /* when the first of them has waited long enough */
    uint64_t noted, written; /* how many there were, how many are durable or lost */
    bool urgent, stop, broken, lost;
    struct bhi_complaint complaint; /* why it is broken */
    uint64_t linger_ns;
    pthread_t thread;
    bool has_thread;
};

/* What SQLite says went wrong, as a complaint that says what to do. Always false. */
bool bhi_journal_complain(const struct bhi_journal *journal, int rc,
                          struct bhi_complaint *complaint);
/* A number that a statement yields. */
bool bhi_journal_number(struct bhi_journal *journal, const char *sql, int64_t *out_number,
                        struct bhi_complaint *complaint);
/* Ends a transaction that went wrong. */
void bhi_journal_rollback(struct bhi_journal *journal);
/* Ends one whose statements came to |rc|: commits it, or takes it back and says why (false). */
bool bhi_journal_end(struct bhi_journal *journal, int rc, struct bhi_complaint *complaint);

/* Opens folder, lock and database; makes what is missing. What is open stays for the caller to
 * close, also on failure. */
enum bhi_queue_result bhi_journal_open_database(struct bhi_journal *journal,
                                                const struct bhi_queue_options *options,
                                                struct bhi_journal_batch *out_batch,
                                                struct bhi_complaint *complaint);
/* Moves the log into the database's file: what is in that, no damage to the log takes away (SQLite
 * takes what it cannot read of it for its end). Then the folder is one that has jobs. Where another
 * program reads what was there before, the log stays, and that is no failure; |waits|: not at once.
 */
bool bhi_journal_move_log(struct bhi_journal *journal, bool waits, struct bhi_complaint *complaint);
/* From now on the log goes into the database when that is closed, and the lock stays. */
void bhi_journal_accept_database(struct bhi_journal *journal);
/* Closes database and lock; takes away a lock that was made for a folder that is refused. */
void bhi_journal_close_database(struct bhi_journal *journal);
/* Prepares all statements. */
bool bhi_journal_prepare(struct bhi_journal *journal, struct bhi_complaint *complaint);
/* Writes one note; within a transaction. An SQLite code. */
int bhi_journal_write(struct bhi_journal *journal, const struct bhi_note *note);
/* Binds |arguments| (i: int64_t, t: const char *, b: 32 bytes, n: none) and runs it. An SQLite
 * code: SQLITE_OK; SQLITE_CORRUPT where the row that it changes is not there. */
int bhi_journal_run(struct bhi_journal *journal, enum bhi_sql_statement statement,
                    const char *arguments, ...);

#endif
