/* What the journal writes: jobs when they are added, and notes. */
#include "batch/journal/database.h"
#include "batch/journal/journal.h"
#include "tool/clock.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
};

static bool prepare(struct bhi_journal *journal, enum bhi_sql_statement id, const char *sql,
                    struct bhi_complaint *complaint) {
    sqlite3_finalize(journal->statements[id]);
    journal->statements[id] = NULL;
    const int rc = sqlite3_prepare_v3(journal->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                      &journal->statements[id], NULL);
    return rc == SQLITE_OK || bhi_journal_complain(journal, rc, complaint);
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
        if (!prepare(journal, (enum bhi_sql_statement)i, sql_of(journal, i), complaint)) {
            return false;
        }
    }
    return true;
}

bool bhi_journal_prepare_attempt(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    return prepare(journal, BHI_SQL_ATTEMPT, statements[BHI_SQL_ATTEMPT], complaint) &&
           prepare(journal, BHI_SQL_STARTED, statements[BHI_SQL_STARTED], complaint);
}

/* Returns true if the statement must change exactly one row. The others end transactions, or change
 * all rows in some state. */
static bool changes_one(enum bhi_sql_statement id) {
    return id != BHI_SQL_BEGIN && id != BHI_SQL_COMMIT && id != BHI_SQL_RESUME &&
           id != BHI_SQL_RETRY;
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

/* -- notes --------------------------------------------------------------------------------------
 */

static int write_attempt(struct bhi_journal *journal, const struct bhi_note *note) {
    const struct bhi_attempt *attempt = note->attempt;
    const bh_verdict *verdict = &attempt->verdict;
    const uint64_t ended_ns = attempt->ended_ns ? attempt->ended_ns : note->time_ns;
    return bhi_journal_run(
        journal, BHI_SQL_ATTEMPT, "iiiiiiiiiiiiitbtitt", (int64_t)note->job, (int64_t)note->tried,
        (int64_t)attempt->started, (int64_t)attempt->stream, (int64_t)attempt->started_ns,
        (int64_t)ended_ns, (int64_t)attempt->guilty, (int64_t)verdict->status,
        (int64_t)verdict->executed, (int64_t)verdict->signal, (int64_t)verdict->exit_code,
        (int64_t)verdict->worker_pid, (int64_t)verdict->limit, verdict->kernel_name,
        verdict->kernel_hash, verdict->message, (int64_t)verdict->blame, verdict->device,
        journal->feed.host);
}

/* Records the end of an attempt that an earlier process sealed; its row exists. */
static int finish_attempt(struct bhi_journal *journal, const struct bhi_note *note) {
    const struct bhi_attempt *attempt = note->attempt;
    const bh_verdict *verdict = &attempt->verdict;
    return bhi_journal_run(
        journal, BHI_SQL_FINISHED, "iiiiiti", (int64_t)note->job, (int64_t)note->tried,
        (int64_t)(attempt->ended_ns ? attempt->ended_ns : note->time_ns), (int64_t)attempt->guilty,
        (int64_t)verdict->status, verdict->message, (int64_t)verdict->blame);
}

int bhi_journal_write(struct bhi_journal *journal, const struct bhi_note *note) {
    const int64_t job = (int64_t)note->job, now = (int64_t)note->time_ns;
    const int64_t ended_ns = bhi_job_state_is_end(note->state) ? now : 0;
    int rc = SQLITE_OK;
    switch (note->kind) {
    case BHI_NOTE_STARTED:
        (void)((rc = bhi_journal_run(journal, BHI_SQL_STARTED, "iiiit", job, (int64_t)note->tried,
                                     (int64_t)note->stream, now, journal->feed.host)) !=
                   SQLITE_OK ||
               (rc = bhi_journal_run(journal, BHI_SQL_RUNNING, "iiii", job, (int64_t)note->tried,
                                     (int64_t)note->attempts, now)) != SQLITE_OK);
        return rc;
    case BHI_NOTE_SEALED:
        rc = write_attempt(journal, note);
        return rc == SQLITE_OK ? bhi_journal_run(journal, BHI_SQL_SEALED, "it", job, note->outputs)
                               : rc;
    case BHI_NOTE_ENDED:
        if (note->attempt) {
            rc = note->sealed_before ? finish_attempt(journal, note) : write_attempt(journal, note);
        }
        if (rc != SQLITE_OK) {
            return rc;
        }
        return bhi_journal_run(journal, BHI_SQL_ENDED, "iiiiiiii", job, (int64_t)note->state,
                               (int64_t)note->attempts, (int64_t)note->guilty,
                               (int64_t)note->victim, (int64_t)note->tried, ended_ns,
                               (int64_t)note->sealed_before);
    case BHI_NOTE_STATE:
        return bhi_journal_run(journal, BHI_SQL_STATE, note->origin ? "iiii" : "iini", job,
                               (int64_t)note->state, (int64_t)note->origin, ended_ns);
    }
    return rc;
}

/* -- adding -------------------------------------------------------------------------------------
 */

static int add_job(struct bhi_journal *journal, const struct bhi_graph *graph,
                   const struct bhi_job_node *node, uint64_t now_ns) {
    const struct bhi_job *job = &node->job;
    const int64_t number = (int64_t)job->number;
    int rc;
    if ((rc = bhi_journal_run(journal, BHI_SQL_JOB, "itiiiit", number, job->id, (int64_t)job->line,
                              (int64_t)job->priority, (int64_t)job->retries, (int64_t)now_ns,
                              job->text)) != SQLITE_OK ||
        (rc = bhi_journal_run(journal, BHI_SQL_PROGRESS, "ii", number, (int64_t)node->state)) !=
            SQLITE_OK) {
        return rc;
    }
    for (uint32_t e = node->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
        rc = bhi_journal_run(journal, BHI_SQL_DEPENDENCY, "ii", number,
                             (int64_t)graph->edges[e].node + 1);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

/* Records the jobs from before, in the state in which they go on. */
static int resume_jobs(struct bhi_journal *journal, const struct bhi_graph *graph,
                       const struct bhi_queue_options *resumed, uint64_t now_ns) {
    int rc = bhi_journal_run(journal, BHI_SQL_RESUME, "");
    if (rc == SQLITE_OK && resumed->retry_failed) {
        rc = bhi_journal_run(journal, BHI_SQL_RETRY, "");
    }
    for (uint32_t i = 0; rc == SQLITE_OK && i < graph->admitted; i++) {
        const struct bhi_job_node *node = bhi_graph_node(graph, i);
        const struct bhi_job *job = &node->job;
        const struct bhi_note note = {
            .kind = BHI_NOTE_STATE,
            .state = node->state,
            .job = job->number,
            .origin = node->origin == BHI_NO_NODE ? 0 : (uint64_t)node->origin + 1,
            .time_ns = now_ns};
        if (node->redo_unrecorded) {
            rc = bhi_journal_run(journal, BHI_SQL_REDO, "i", (int64_t)job->number);
        }
        if (rc == SQLITE_OK && node->state_unrecorded) {
            rc = bhi_journal_write(journal, &note);
        }
        if (rc == SQLITE_OK && node->line_unrecorded) {
            rc = bhi_journal_run(journal, BHI_SQL_REPLACE, "iiiit", (int64_t)job->number,
                                 (int64_t)job->line, (int64_t)job->priority, (int64_t)job->retries,
                                 job->text);
        }
    }
    return rc;
}

bool bhi_journal_end(struct bhi_journal *journal, int rc, struct bhi_complaint *complaint) {
    if (rc == SQLITE_OK) {
        rc = bhi_journal_run(journal, BHI_SQL_COMMIT, "");
    }
    if (rc == SQLITE_OK) {
        return true;
    }
    bhi_journal_complain(journal, rc, complaint);
    bhi_journal_rollback(journal);
    return false;
}

enum bhi_queue_result bhi_journal_add(struct bhi_journal *journal, const struct bhi_graph *graph,
                                      const struct bhi_queue_options *resumed,
                                      struct bhi_complaint *complaint) {
    const uint64_t now_ns = bhi_clock_calendar_ns();
    pthread_mutex_lock(&journal->database);
    int rc = bhi_journal_run(journal, BHI_SQL_BEGIN, "");
    if (rc == SQLITE_OK && resumed) {
        rc = resume_jobs(journal, graph, resumed, now_ns);
    }
    for (uint32_t i = graph->admitted; rc == SQLITE_OK && i < graph->count; i++) {
        rc = add_job(journal, graph, bhi_graph_node(graph, i), now_ns);
    }
    bool good = bhi_journal_end(journal, rc, complaint);
    good = good && (!graph->count || bhi_journal_move_log(journal, true, complaint));
    if (good && graph->count) {
        bhi_feed_rewrite(&journal->feed, journal->db, journal->state.fd);
    }
    pthread_mutex_unlock(&journal->database);
    return good ? BHI_QUEUE_OK : BHI_QUEUE_ENVIRON;
}
