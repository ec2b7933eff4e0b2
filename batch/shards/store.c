#include "batch/shards/store.h"
#include "batch/journal/attempt_row.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum statement {
    JOB,
    STATE,
    ATTEMPT,
    FORGET_JOBS,
    FORGET_ATTEMPTS,
    NAME,
    COUNT,
    BEHIND,
    STATEMENTS
};

struct bhi_store {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    bool failed; /* a statement did: what is in it is incomplete */
};

/* A column of an attempt that later lines may fill in or replace. */
/* clang-format off */
#define ATTEMPT_COLUMNS(X)                                                                         \
    X(given) X(stream) X(started_ns) X(ended_ns) X(blamed) X(status) X(executed) X(signal)         \
    X(exit_code) X(worker) X(reached) X(blame) X(kernel_name) X(message) X(device) X(host)
/* clang-format on */

#define DECLARED(column) #column ", "
#define PLACE(column)    ", ?"
#define NAMED(column)    ", " #column
#define TAKEN(column)    #column " = coalesce(excluded." #column ", " #column "), "

static const char schema[] =
    "CREATE TABLE shard (shard INTEGER PRIMARY KEY, name TEXT NOT NULL);"
    "CREATE TABLE job (shard, number, id, line, text, state, attempts, guilty, verdict, origin, "
    "ended_ns, PRIMARY KEY (shard, number)) WITHOUT ROWID;"
    "CREATE TABLE attempt (shard, job, attempt, " ATTEMPT_COLUMNS(
        DECLARED) "PRIMARY KEY (shard, job, attempt)) WITHOUT ROWID;"
                  "CREATE TABLE place (shard, host, stream, row INTEGER, name TEXT, "
                  "PRIMARY KEY (shard, host, stream)) WITHOUT ROWID;";

static const char *const sql[STATEMENTS] = {
    [JOB] = "INSERT INTO job (shard, number, id, line, text, state, attempts, guilty, verdict, "
            "ended_ns) VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0) ON CONFLICT DO UPDATE SET "
            "id = excluded.id, line = excluded.line, text = excluded.text",
    [STATE] = "UPDATE job SET state = ?3, attempts = coalesce(?4, attempts), "
              "guilty = coalesce(?5, guilty), verdict = coalesce(?6, verdict), origin = ?7, "
              "ended_ns = CASE WHEN ?3 >= 3 THEN coalesce(?8, ended_ns) ELSE 0 END "
              "WHERE shard = ?1 AND number = ?2",
    [ATTEMPT] = "INSERT INTO attempt (shard, job, attempt" ATTEMPT_COLUMNS(
        NAMED) ") "
               "VALUES (?, ?, ?" ATTEMPT_COLUMNS(
                   PLACE) ") ON CONFLICT DO UPDATE SET " ATTEMPT_COLUMNS(TAKEN) "attempt = "
                                                                                "excluded.attempt",
    [FORGET_JOBS] = "DELETE FROM job WHERE shard = ?",
    [FORGET_ATTEMPTS] = "DELETE FROM attempt WHERE shard = ?",
    [NAME] = "INSERT OR REPLACE INTO shard VALUES (?, ?)",
    [COUNT] = "SELECT state, count(*) FROM job WHERE shard = ? GROUP BY state",
    [BEHIND] = "SELECT count(*) - count(DISTINCT stream) FROM (SELECT (SELECT stream FROM attempt "
               "WHERE attempt.shard = job.shard AND attempt.job = job.number "
               "ORDER BY attempt.attempt DESC LIMIT 1) AS stream FROM job "
               "WHERE shard = ? AND state = 2) WHERE stream IS NOT NULL",
};

static bool run_sql(struct bhi_store *store, const char *text) {
    const bool good = sqlite3_exec(store->db, text, NULL, NULL, NULL) == SQLITE_OK;
    store->failed |= !good;
    return good;
}

struct bhi_store *bhi_store_open(struct bhi_complaint *complaint) {
    struct bhi_store *store = calloc(1, sizeof *store);
    if (!store) {
        bhi_refuse(complaint, "out of memory");
        return NULL;
    }
    /* An empty name is a temporary file, which SQLite has unlinked. Nothing of it need survive. */
    bool good = sqlite3_open_v2("", &store->db,
                                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                                NULL) == SQLITE_OK &&
                run_sql(store, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                               "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -16384;"
                               "PRAGMA temp_store = FILE;") &&
                run_sql(store, schema);
    for (int i = 0; good && i < STATEMENTS; i++) {
        good = sqlite3_prepare_v3(store->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                  &store->statements[i], NULL) == SQLITE_OK;
    }
    if (!good) {
        bhi_refuse(complaint, "no temporary file can be made for the records (TMPDIR): %s",
                   store->db ? sqlite3_errmsg(store->db) : "out of memory");
        bhi_store_close(store);
        return NULL;
    }
    return store;
}

void bhi_store_close(struct bhi_store *store) {
    if (!store) {
        return;
    }
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(store->statements[i]);
    }
    sqlite3_close(store->db);
    free(store);
}

bool bhi_store_begin(struct bhi_store *store) {
    return run_sql(store, "BEGIN");
}

bool bhi_store_end(struct bhi_store *store) {
    return run_sql(store, "COMMIT");
}

static sqlite3_stmt *begin(struct bhi_store *store, enum statement id, uint32_t shard) {
    sqlite3_bind_int64(store->statements[id], 1, shard);
    return store->statements[id];
}

static void bind_number(sqlite3_stmt *statement, int index, int64_t number) {
    if (number == BHI_FEED_ABSENT) {
        sqlite3_bind_null(statement, index);
    } else {
        sqlite3_bind_int64(statement, index, number);
    }
}

/* NULL where |text| is. */
static void bind_text(sqlite3_stmt *statement, int index, const char *text) {
    sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static bool step(struct bhi_store *store, sqlite3_stmt *statement) {
    const bool good = sqlite3_step(statement) == SQLITE_DONE;
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement); /* they are the caller's */
    store->failed |= !good;
    return good;
}

bool bhi_store_name(struct bhi_store *store, uint32_t shard, const char *name) {
    sqlite3_stmt *statement = begin(store, NAME, shard);
    bind_text(statement, 2, name);
    return step(store, statement);
}

bool bhi_store_forget(struct bhi_store *store, uint32_t shard) {
    return step(store, begin(store, FORGET_JOBS, shard)) &&
           step(store, begin(store, FORGET_ATTEMPTS, shard));
}

static bool take_attempt(struct bhi_store *store, uint32_t shard,
                         const struct bhi_feed_line *line) {
    const int64_t values[] = {line->given,     line->stream, line->started_ns, line->ended_ns,
                              line->blamed,    line->status, line->executed,   line->signal,
                              line->exit_code, line->worker, line->limit,      line->blame};
    const char *const texts[] = {line->kernel_name, line->message, line->on, line->host};
    sqlite3_stmt *statement = begin(store, ATTEMPT, shard);
    int index = 2;
    bind_number(statement, index++, line->job);
    bind_number(statement, index++, line->attempt);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        bind_number(statement, index++, values[i]);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bind_text(statement, index++, texts[i]);
    }
    return step(store, statement);
}

bool bhi_store_take(struct bhi_store *store, uint32_t shard, const struct bhi_feed_line *line,
                    const char *text, bool *out_fits) {
    *out_fits = true;
    if (line->id) {
        sqlite3_stmt *statement = begin(store, JOB, shard);
        bind_number(statement, 2, line->job);
        bind_text(statement, 3, line->id);
        bind_number(statement, 4, line->line == BHI_FEED_ABSENT ? 0 : line->line);
        bind_text(statement, 5, text);
        if (!step(store, statement)) {
            return false;
        }
    }
    if (line->attempt != BHI_FEED_ABSENT && !take_attempt(store, shard, line)) {
        return false;
    }
    if (line->state == BHI_FEED_ABSENT) {
        return true;
    }
    sqlite3_stmt *statement = begin(store, STATE, shard);
    const int64_t values[] = {line->job,     line->state,  line->attempts, line->guilty,
                              line->verdict, line->origin, line->at_ns};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        bind_number(statement, 2 + (int)i, values[i]);
    }
    const bool good = step(store, statement);
    *out_fits = !good || sqlite3_changes(store->db) == 1; /* otherwise there is no such job */
    return good;
}

/* A stream takes jobs before their turn, and runs one at a time: the others still wait. */
static bool count_behind(struct bhi_store *store, uint32_t shard, uint64_t *out_behind) {
    sqlite3_stmt *statement = begin(store, BEHIND, shard);
    const bool good = sqlite3_step(statement) == SQLITE_ROW;
    *out_behind = good ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    return good;
}

bool bhi_store_count(struct bhi_store *store, uint32_t shard, uint64_t out_of[BHI_JOB_STATES]) {
    sqlite3_stmt *statement = begin(store, COUNT, shard);
    uint64_t behind = 0;
    int rc;
    memset(out_of, 0, BHI_JOB_STATES * sizeof *out_of);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const int64_t state = sqlite3_column_int64(statement, 0);
        if (state >= 0 && state < BHI_JOB_STATES) {
            out_of[state] = (uint64_t)sqlite3_column_int64(statement, 1);
        }
    }
    (void)sqlite3_reset(statement);
    if (rc != SQLITE_DONE ||
        (out_of[BHI_JOB_RUNNING] > 1 && !count_behind(store, shard, &behind))) {
        return false;
    }
    out_of[BHI_JOB_RUNNING] -= behind;
    out_of[BHI_JOB_WAITING] += behind;
    return true;
}

/* -- for reports ----------------------------------------------------------------------------- */

/* From fine to coarse: what has a row of its own. */
static const struct {
    const char *alike, *name;
} grains[] = {
    {"host, shard, stream", "substr(host, 1, 14) || ' ' || shard.name || ' stream ' || stream"},
    {"host, shard", "substr(host, 1, 20) || ' ' || shard.name"},
    {"host", "substr(host, 1, 31)"},
};

bool bhi_store_make_rows(struct bhi_store *store, uint32_t most) {
    char text[640];
    bool good = true;
    for (size_t i = 0; good && i < sizeof grains / sizeof grains[0]; i++) {
        sqlite3_stmt *statement = NULL;
        snprintf(text, sizeof text,
                 "DELETE FROM place; INSERT INTO place SELECT shard, host, stream, "
                 "dense_rank() OVER (ORDER BY %s) - 1, %s FROM (SELECT DISTINCT shard, "
                 "coalesce(host, '?') AS host, coalesce(stream, 0) AS stream FROM attempt) "
                 "JOIN shard USING (shard)",
                 grains[i].alike, grains[i].name);
        good = run_sql(store, text) &&
               sqlite3_prepare_v2(store->db, "SELECT coalesce(max(row), 0) FROM place", -1,
                                  &statement, NULL) == SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW;
        const int64_t last = good ? sqlite3_column_int64(statement, 0) : 0;
        sqlite3_finalize(statement);
        if (last < most) {
            break;
        }
    }
    return good;
}

static uint64_t number_of(sqlite3_stmt *row, int column) {
    return (uint64_t)sqlite3_column_int64(row, column);
}

#define JOBS                                                                                       \
    "SELECT job.number, job.id, job.line, job.state, job.attempts, job.guilty, "                   \
    "coalesce(started_ns, 0), job.ended_ns, origin.id, coalesce(status, 2), message, "             \
    "coalesce(blame, 0), job.text, (SELECT coalesce(sum(max(made.ended_ns - made.started_ns, "     \
    "0)), 0) FROM attempt AS made WHERE made.shard = job.shard AND made.job = job.number AND "     \
    "made.given), device, host, shard.name FROM job "                                              \
    "JOIN shard USING (shard) "                                                                    \
    "LEFT JOIN job AS origin ON origin.shard = job.shard AND origin.number = job.origin "          \
    "LEFT JOIN attempt ON attempt.shard = job.shard AND attempt.job = job.number "                 \
    "AND attempt.attempt = job.verdict "
#define ATTEMPTS                                                                                   \
    "SELECT attempt.job, job.id, attempt, coalesce(given, 1), coalesce(attempt.stream, 0), "       \
    "coalesce(started_ns, 0), coalesce(attempt.ended_ns, 0), coalesce(blamed, 0), "                \
    "coalesce(status, 2), "                                                                        \
    "coalesce(executed, 1), coalesce(signal, 0), coalesce(exit_code, -1), coalesce(worker, 0), "   \
    "coalesce(reached, 0), kernel_name, NULL, message, coalesce(blame, 0), device, attempt.host, " \
    "place.row, place.name, attempt.ended_ns IS NULL AND job.state = 2 AND NOT EXISTS (SELECT 1 "  \
    "FROM "                                                                                        \
    "attempt AS later WHERE later.shard = attempt.shard AND later.job = attempt.job "              \
    "AND later.attempt > attempt.attempt) FROM attempt "                                           \
    "JOIN job ON job.shard = attempt.shard AND job.number = attempt.job "                          \
    "JOIN shard ON shard.shard = attempt.shard "                                                   \
    "LEFT JOIN place ON place.shard = attempt.shard "                                              \
    "AND place.host = coalesce(attempt.host, '?') AND place.stream = coalesce(attempt.stream, 0) "

static bool visit_job(sqlite3_stmt *row, void *argument) {
    const struct bhi_job_visit *visit = argument;
    const struct bhi_job_record record = {
        .number = number_of(row, 0),
        .id = bhi_row_text(row, 1),
        .line = (size_t)number_of(row, 2),
        .state = (enum bhi_job_state)number_of(row, 3),
        .attempts = (uint32_t)number_of(row, 4),
        .guilty = (uint32_t)number_of(row, 5),
        .started_ns = number_of(row, 6),
        .ended_ns = number_of(row, 7),
        .origin = bhi_row_text(row, 8),
        .status = (bh_status)number_of(row, 9),
        .message = bhi_row_text(row, 10),
        .blame = (bh_blame)number_of(row, 11),
        .text = bhi_row_text(row, 12),
        .outputs = "",
        .took_ns = number_of(row, 13),
        .device = bhi_row_text(row, 14),
        .host = bhi_row_text(row, 15),
        .shard = bhi_row_text(row, 16),
    };
    return visit->visit(visit->user, &record);
}

static bool visit_attempt(sqlite3_stmt *row, void *argument) {
    const struct bhi_attempt_visit *visit = argument;
    struct bhi_attempt_record record;
    bhi_row_attempt(row, &record);
    record.row = (uint32_t)number_of(row, BHI_ATTEMPT_COLUMNS);
    record.row_name = bhi_row_text(row, BHI_ATTEMPT_COLUMNS + 1);
    record.runs = number_of(row, BHI_ATTEMPT_COLUMNS + 2) != 0;
    return visit->visit(visit->user, &record);
}

struct twice_visit {
    bool (*visit)(void *user, const char *id, const char *where);
    void *user;
};

static bool visit_twice(sqlite3_stmt *row, void *argument) {
    const struct twice_visit *visit = argument;
    return visit->visit(visit->user, bhi_row_text(row, 0), bhi_row_text(row, 1));
}

/* |id|, |shard|: the statement's parameters; NULL: none. */
static bool each_row(struct bhi_store *store, const char *text, const char *id, const char *shard,
                     bool (*visit)(sqlite3_stmt *row, void *argument), void *argument) {
    sqlite3_stmt *statement = NULL;
    int rc =
        store->failed ? SQLITE_ERROR : sqlite3_prepare_v2(store->db, text, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        if (id) {
            bind_text(statement, 1, id);
        }
        if (shard) {
            bind_text(statement, 2, shard);
        }
        while ((rc = sqlite3_step(statement)) == SQLITE_ROW && visit(statement, argument)) {
            continue;
        }
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE || rc == SQLITE_ROW;
}

bool bhi_store_each_job(struct bhi_store *store,
                        bool (*visit)(void *user, const struct bhi_job_record *record),
                        void *user) {
    return each_row(store, JOBS "ORDER BY job.shard, job.number", NULL, NULL, visit_job,
                    &(struct bhi_job_visit){visit, user});
}

static bool take_span(sqlite3_stmt *row, void *argument) {
    *(struct bhi_store_span *)argument =
        (struct bhi_store_span){number_of(row, 0), number_of(row, 1), number_of(row, 2)};
    return true;
}

bool bhi_store_span(struct bhi_store *store, struct bhi_store_span *out_span) {
    static const char text[] = "SELECT min(nullif(started_ns, 0)), "
                               "max(coalesce(nullif(ended_ns, 0), started_ns, 0)), "
                               "sum(coalesce(given, 1)) FROM attempt";
    return each_row(store, text, NULL, NULL, take_span, out_span);
}

static bool take_bool(sqlite3_stmt *row, void *argument) {
    *(bool *)argument = number_of(row, 0) != 0;
    return true;
}

bool bhi_store_names_device(struct bhi_store *store, bool *out_names) {
    /* Quotes inside strings are escaped in the text, so a match is a key. */
    static const char text[] = "SELECT EXISTS (SELECT 1 FROM job WHERE instr(text, '\"device\":'))";
    return each_row(store, text, NULL, NULL, take_bool, out_names);
}

bool bhi_store_find_job(struct bhi_store *store, const char *id,
                        bool (*visit)(void *user, const struct bhi_job_record *record),
                        void *user) {
    return each_row(store, JOBS "WHERE job.id = ? ORDER BY job.shard, job.number", id, NULL,
                    visit_job, &(struct bhi_job_visit){visit, user});
}

bool bhi_store_each_attempt(struct bhi_store *store,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user) {
    return each_row(store, ATTEMPTS "ORDER BY attempt.shard, attempt.job, attempt.attempt", NULL,
                    NULL, visit_attempt, &(struct bhi_attempt_visit){visit, user});
}

bool bhi_store_find_attempts(struct bhi_store *store, const char *id, const char *shard,
                             bool (*visit)(void *user, const struct bhi_attempt_record *record),
                             void *user) {
    return each_row(store, ATTEMPTS "WHERE job.id = ? AND shard.name = ? ORDER BY attempt.attempt",
                    id, shard, visit_attempt, &(struct bhi_attempt_visit){visit, user});
}

bool bhi_store_each_twice(struct bhi_store *store,
                          bool (*visit)(void *user, const char *id, const char *where),
                          void *user) {
    static const char text[] =
        "SELECT id, group_concat(name || ' (' || CASE state WHEN 0 THEN 'submitted' "
        "WHEN 1 THEN 'waiting' WHEN 2 THEN 'running' WHEN 3 THEN 'done' WHEN 4 THEN 'failed' "
        "WHEN 5 THEN 'quarantined' ELSE 'cancelled' END || ')', ', ') "
        "FROM (SELECT id, name, state FROM job JOIN shard USING (shard) ORDER BY id, shard) "
        "GROUP BY id HAVING count(*) > 1 ORDER BY id";
    return each_row(store, text, NULL, NULL, visit_twice, &(struct twice_visit){visit, user});
}
