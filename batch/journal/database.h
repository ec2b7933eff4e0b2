/* Internals of the journal, for the files that implement it: the database, its thread, its
 * notes. */
#ifndef BHI_BATCH_JOURNAL_DATABASE_H
#define BHI_BATCH_JOURNAL_DATABASE_H

#include <pthread.h>
#include <sqlite3.h>

#include "batch/journal/feed.h"
#include "batch/journal/lock.h"
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
    BHI_SQL_FILE,
    BHI_SQL_UNUSE,
    BHI_SQL_USE,
    BHI_SQL_COUNT
};

struct bhi_journal {
    char *folder, *path; /* owned; folder and database, as given */
    struct bhi_state_folder state;
    struct bhi_lock lock;

    pthread_mutex_t database; /* held while |db| is used; taken before |mutex| */
    sqlite3 *db;
    bool has_device, has_host;       /* attempt has the column (schema.h) */
    bool has_files;                  /* the tables of files exist */
    struct bhi_used_rows *used_rows; /* owned; NULL: no row was written yet */
    bool lacks_log;                  /* SQLite has not made the write-ahead log */
    bool log_stays; /* when jobs were added, another program was reading the old content */
    struct bhi_feed feed;
    sqlite3_stmt *statements[BHI_SQL_COUNT];

    pthread_mutex_t mutex;   /* guards the fields below */
    pthread_cond_t wake;     /* tells the thread that there is work (CLOCK_MONOTONIC) */
    pthread_cond_t settled;  /* |written| has grown, or |broken| is set */
    struct bhi_list notes;   /* bhi_note.node; not yet taken by the thread; owned */
    uint64_t due_ns;         /* when the first note has waited long enough */
    uint64_t noted, written; /* numbers of notes: all; those durable or lost */
    bool urgent, stop, broken, lost;
    struct bhi_complaint complaint; /* why the journal is broken */
    uint64_t linger_ns;
    uint64_t beat_ns; /* when the lock is touched next; the thread's */
    pthread_t thread;
    bool has_thread;
};

/* Has the database all columns and tables of this version? */
static inline bool bhi_journal_is_present(const struct bhi_journal *journal) {
    return journal->has_device && journal->has_host && journal->has_files;
}
/* Complains about an SQLite error, and says what to do. Always returns false. */
bool bhi_journal_complain(const struct bhi_journal *journal, int rc,
                          struct bhi_complaint *complaint);
/* Reads the number that a statement returns. */
bool bhi_journal_number(struct bhi_journal *journal, const char *sql, int64_t *out_number,
                        struct bhi_complaint *complaint);
/* Visits durable rows. |number| takes the place of the parameter, if there is one. The database is
 * locked meanwhile. */
bool bhi_journal_each_row(struct bhi_journal *journal, const char *sql, uint64_t number,
                          bool (*visit)(sqlite3_stmt *row, void *argument), void *argument);
/* Rolls back a failed transaction. */
void bhi_journal_rollback(struct bhi_journal *journal);
/* Ends a transaction whose statements returned |rc|: commits it, or rolls it back and returns false
 * with a complaint. */
bool bhi_journal_end(struct bhi_journal *journal, int rc, struct bhi_complaint *complaint);

/* Opens folder, lock and database, and makes what is missing. The caller closes what is open, also
 * on failure. */
enum bhi_queue_result bhi_journal_open_database(struct bhi_journal *journal,
                                                const struct bhi_queue_options *options,
                                                struct bhi_journal_batch *out_batch,
                                                struct bhi_complaint *complaint);
/* Moves the log into the database's file: there no damage of the log can remove it (SQLite treats
 * an unreadable part as the log's end). Then marks the folder as one that has had jobs. If another
 * program reads the old content, the log stays, which is no failure. |waits|: not at once, but
 * after a wait. */
bool bhi_journal_move_log(struct bhi_journal *journal, bool waits, struct bhi_complaint *complaint);
/* Gives the database the present format. From now on closing it moves the log into it, and the lock
 * file stays. */
bool bhi_journal_accept_database(struct bhi_journal *journal, struct bhi_complaint *complaint);
/* Closes database and lock. Removes a lock file that was made for a refused folder. */
void bhi_journal_close_database(struct bhi_journal *journal);
/* Prepares all statements. */
bool bhi_journal_prepare(struct bhi_journal *journal, struct bhi_complaint *complaint);
/* Prepares again what needs all columns and tables, now that they exist. */
bool bhi_journal_prepare_present(struct bhi_journal *journal, struct bhi_complaint *complaint);
/* Records which files attempt |tried| of |job| has read. Returns an SQLite code. */
int bhi_used_rows_write(struct bhi_journal *journal, int64_t job, int64_t tried,
                        const struct bhi_used *used);
void bhi_used_rows_free(struct bhi_used_rows *rows);
/* Writes one note, inside a transaction. Returns an SQLite code. */
int bhi_journal_write(struct bhi_journal *journal, const struct bhi_note *note);
/* Binds |arguments| (i: int64_t, t: const char *, b: 32 bytes, n: none) and runs the statement.
 * Returns an SQLite code: SQLITE_OK, or for example SQLITE_CORRUPT if the row to change does not
 * exist. */
int bhi_journal_run(struct bhi_journal *journal, enum bhi_sql_statement statement,
                    const char *arguments, ...);

#endif
