/* What the journal reads: all jobs when it is opened, records for reports. */
#include "batch/journal/attempt_row.h"
#include "batch/journal/database.h"
#include "batch/journal/journal.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/journal/marks.h"

/* -- loading --------------------------------------------------------------------------------- */

static void begin_anew(struct bhi_job_node *node) {
    node->state = BHI_JOB_SUBMITTED;
    node->origin = BHI_NO_NODE;
    node->job.guilty = node->job.victim = 0;
    node->reopened = true;
}

/* Sets the state of a job after a restart: a job that the last process was running runs again,
 * unless it was sealed. The state is recorded only when the rest of the run has been accepted
 * (bhi_journal_add). */
static void take_up(struct bhi_job_node *node, const struct bhi_queue_options *options) {
    struct bhi_job *job = &node->job;
    if (node->state == BHI_JOB_CANCELLED || node->state == BHI_JOB_RUNNING) {
        node->state = BHI_JOB_WAITING;
    }
    if (options->retry_failed &&
        (node->state == BHI_JOB_FAILED || node->state == BHI_JOB_QUARANTINED)) {
        begin_anew(node);
    }
    job->interrupted = !bhi_job_state_is_end(node->state);
}

/* Marks the jobs that |pattern| of --redo names: an id, "all", or a pattern as of file names. Returns
 * false if there are none. */
static bool mark_redone(struct bhi_graph *graph, const char *pattern) {
    struct bhi_job_node *named = bhi_graph_find(graph, pattern);
    const bool all = !strcmp(pattern, "all");
    if (named) {
        return named->redo_unrecorded = true;
    }
    bool any = false;
    for (uint32_t i = 0; i < graph->count; i++) {
        struct bhi_job_node *node = bhi_graph_node(graph, i);
        if (all || fnmatch(pattern, node->job.id, 0) == 0) {
            any = node->redo_unrecorded = true;
        }
    }
    return any;
}

static bool needs_redone(const struct bhi_graph *graph, const struct bhi_job_node *node) {
    for (uint32_t e = node->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
        if (bhi_graph_node(graph, graph->edges[e].node)->redo_unrecorded) {
            return true;
        }
    }
    return false;
}

/* Runs the jobs of --redo again, with all that depend on them. Their temporary files are
 * removed. */
static enum bhi_queue_result redo(struct bhi_graph *graph, const struct bhi_queue_options *options,
                                  struct bhi_complaint *complaint) {
    for (size_t i = 0; i < options->redo_count; i++) {
        if (!mark_redone(graph, options->redo[i])) {
            bhi_refuse(complaint, "%.400s has no job \"%.255s\" to run again", options->folder,
                       options->redo[i]);
            return BHI_QUEUE_BAD_INPUT;
        }
    }
    for (uint32_t k = 0; options->redo_count && k < graph->count; k++) {
        struct bhi_job_node *node = bhi_graph_node(graph, graph->order[k]); /* by rank */
        struct bhi_job *job = &node->job;
        if (!node->redo_unrecorded && !needs_redone(graph, node)) {
            continue;
        }
        begin_anew(node);
        node->redo_unrecorded = job->interrupted = true;
        job->sealed = false;
        free((char *)job->outputs);
        job->outputs = NULL;
    }
    return BHI_QUEUE_OK;
}

/* Copies the marks of a sealed job's outputs, if there is one for each output. */
static int load_outputs(struct bhi_job *job, const char *outputs) {
    struct bhi_complaint ignored;
    struct bhi_job_spec spec;
    if (!bhi_job_parse(job->text, strlen(job->text), &spec, &ignored)) {
        return SQLITE_CORRUPT;
    }
    const bool good = bhi_marks_check(outputs, spec.write_count);
    bhi_job_spec_free(&spec);
    if (!good) {
        return SQLITE_CORRUPT;
    }
    job->outputs = strdup(outputs);
    return job->outputs ? SQLITE_OK : SQLITE_NOMEM;
}

/* Reads a column that must be a number from |least| to |most|; otherwise *good becomes false. */
static int64_t number_of(sqlite3_stmt *row, int column, int64_t least, int64_t most, bool *good) {
    const int64_t number = sqlite3_column_int64(row, column);
    *good = *good && sqlite3_column_type(row, column) == SQLITE_INTEGER && number >= least &&
            number <= most;
    return number;
}

/* Reads the columns of the next job. Returns SQLITE_CORRUPT if they are inconsistent. The columns
 * of |progress| are NULL if the job has no row there. */
static int load_job(struct bhi_graph *graph, sqlite3_stmt *row, int64_t jobs) {
    enum { STATE = 6, SEALED, ATTEMPTS, GUILTY, VICTIM, TRIED, ORIGIN, OUTPUTS, VERDICT };
    const int64_t number = (int64_t)graph->count + 1;
    const char *id = bhi_row_text(row, 1), *text = bhi_row_text(row, 2);
    bool good = *id && !bhi_graph_find(graph, id);
    (void)number_of(row, 0, number, number, &good);
    const int64_t line = number_of(row, 3, 0, INT64_MAX, &good);
    const int64_t priority = number_of(row, 4, INT32_MIN, INT32_MAX, &good);
    const int64_t retries = number_of(row, 5, 0, UINT32_MAX, &good);
    const int64_t state = number_of(row, STATE, 0, BHI_JOB_STATES - 1, &good);
    const int64_t sealed = number_of(row, SEALED, 0, 1, &good);
    const int64_t attempts = number_of(row, ATTEMPTS, 0, UINT32_MAX, &good);
    const int64_t guilty = number_of(row, GUILTY, 0, UINT32_MAX, &good);
    const int64_t victim = number_of(row, VICTIM, 0, UINT32_MAX, &good);
    const int64_t tried = number_of(row, TRIED, 0, UINT32_MAX, &good);
    const bool has_origin = sqlite3_column_type(row, ORIGIN) != SQLITE_NULL;
    const int64_t origin = has_origin ? number_of(row, ORIGIN, 1, jobs, &good) : 0;
    for (int i = VERDICT; i < sqlite3_column_count(row); i++) {
        (void)number_of(row, i, 0, INT64_MAX, &good); /* for reports; checked here */
    }
    if (!good) {
        return SQLITE_CORRUPT;
    }
    struct bhi_job_node *node = bhi_graph_append(graph, id, text);
    if (!node) {
        return SQLITE_NOMEM;
    }
    struct bhi_job *job = &node->job;
    job->line = (size_t)line;
    job->priority = (int32_t)priority;
    job->retries = (uint32_t)retries;
    job->sealed = state == BHI_JOB_RUNNING && sealed;
    job->attempts = (uint32_t)attempts;
    job->guilty = (uint32_t)guilty;
    job->victim = (uint32_t)victim;
    node->tried = (uint32_t)tried;
    node->origin = origin ? (uint32_t)(origin - 1) : BHI_NO_NODE;
    /* In the database a sealed job stays RUNNING until it has ended, so that it is found after a
     * kill. */
    node->state = job->sealed ? BHI_JOB_WAITING : (enum bhi_job_state)state;
    return job->sealed ? load_outputs(job, bhi_row_text(row, OUTPUTS)) : SQLITE_OK;
}

static int load_dependency(struct bhi_graph *graph, sqlite3_stmt *row, int64_t jobs) {
    const int64_t job = sqlite3_column_int64(row, 0), needs = sqlite3_column_int64(row, 1);
    if (job < 1 || job > jobs || needs < 1 || needs > jobs || job == needs) {
        return SQLITE_CORRUPT;
    }
    return bhi_graph_link(graph, bhi_graph_node(graph, (uint32_t)(job - 1)),
                          bhi_graph_node(graph, (uint32_t)(needs - 1)))
               ? SQLITE_OK
               : SQLITE_NOMEM;
}

static int load_rows(struct bhi_journal *journal, const char *sql, struct bhi_graph *graph,
                     int64_t jobs, int (*load)(struct bhi_graph *, sqlite3_stmt *, int64_t)) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = load(graph, statement, jobs);
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum bhi_queue_result bhi_journal_load(struct bhi_journal *journal,
                                       const struct bhi_queue_options *options,
                                       struct bhi_graph *graph, struct bhi_complaint *complaint) {
    int64_t jobs, rows;
    struct bhi_job_node *cycle = NULL;
    if (!bhi_journal_number(journal, "SELECT count(*) FROM job", &jobs, complaint) ||
        !bhi_journal_number(journal, "SELECT count(*) FROM progress", &rows, complaint)) {
        return BHI_QUEUE_ENVIRON;
    }
    int rc = load_rows(
        journal,
        "SELECT number, id, text, line, priority, retries, state, sealed, attempts, guilty, "
        "victim, tried, origin, outputs, verdict, submitted_ns, started_ns, ended_ns "
        "FROM job LEFT JOIN progress ON progress.job = number "
        "ORDER BY number",
        graph, jobs, load_job);
    if (rc == SQLITE_OK && (graph->count != jobs || rows != jobs)) {
        rc = SQLITE_CORRUPT;
    }
    for (uint32_t i = 0; rc == SQLITE_OK && i < graph->count; i++) {
        take_up(bhi_graph_node(graph, i), options);
    }
    if (rc == SQLITE_OK) {
        rc = load_rows(journal, "SELECT job, needs FROM dependency ORDER BY job, needs", graph,
                       jobs, load_dependency);
    }
    if (rc == SQLITE_OK && !bhi_graph_rank(graph, &cycle)) {
        rc = cycle ? SQLITE_CORRUPT : SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK) {
        return redo(graph, options, complaint);
    }
    bhi_journal_complain(journal, rc, complaint);
    return BHI_QUEUE_ENVIRON;
}

/* -- records --------------------------------------------------------------------------------- */

static bool visit_job(sqlite3_stmt *row, void *argument) {
    const struct bhi_job_visit *visit = argument;
    const struct bhi_job_record record = {
        .number = (uint64_t)sqlite3_column_int64(row, 0),
        .id = bhi_row_text(row, 1),
        .line = (size_t)sqlite3_column_int64(row, 2),
        .state = (enum bhi_job_state)sqlite3_column_int(row, 3),
        .priority = sqlite3_column_int(row, 4),
        .retries = (uint32_t)sqlite3_column_int64(row, 5),
        .attempts = (uint32_t)sqlite3_column_int64(row, 6),
        .guilty = (uint32_t)sqlite3_column_int64(row, 7),
        .submitted_ns = (uint64_t)sqlite3_column_int64(row, 8),
        .started_ns = (uint64_t)sqlite3_column_int64(row, 9),
        .ended_ns = (uint64_t)sqlite3_column_int64(row, 10),
        .origin = bhi_row_text(row, 11),
        .status = (bh_status)sqlite3_column_int(row, 12),
        .message = bhi_row_text(row, 13),
        .sealed = sqlite3_column_int(row, 14) != 0,
        .blame = (bh_blame)sqlite3_column_int(row, 15),
        .text = bhi_row_text(row, 16),
        .outputs = bhi_row_text(row, 17),
        .took_ns = (uint64_t)sqlite3_column_int64(row, 18),
        .device = bhi_row_text(row, 19),
        .host = bhi_row_text(row, 20),
    };
    return visit->visit(visit->user, &record);
}

static bool visit_attempt(sqlite3_stmt *row, void *argument) {
    const struct bhi_attempt_visit *visit = argument;
    struct bhi_attempt_record record;
    bhi_row_attempt(row, &record);
    return visit->visit(visit->user, &record);
}

bool bhi_journal_each_row(struct bhi_journal *journal, const char *sql, uint64_t number,
                          bool (*visit)(sqlite3_stmt *row, void *argument), void *argument) {
    sqlite3_stmt *statement = NULL;
    pthread_mutex_lock(&journal->database);
    int rc = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(statement)) {
        rc = sqlite3_bind_int64(statement, 1, (int64_t)number);
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = visit(statement, argument) ? SQLITE_OK : SQLITE_DONE;
    }
    sqlite3_finalize(statement);
    pthread_mutex_unlock(&journal->database);
    return rc == SQLITE_DONE;
}

/* |device|, |host|: the columns, or '' where the database has none yet. */
#define EACH_JOB(device, host)                                                                     \
    "SELECT job.number, job.id, job.line, state, job.priority, job.retries, "                      \
    "attempts, progress.guilty, job.submitted_ns, "                                                \
    "CASE attempt.started WHEN 1 THEN attempt.started_ns WHEN 0 THEN 0 "                           \
    "ELSE progress.started_ns END, "                                                               \
    "progress.ended_ns, origin.id, coalesce(status, 2), message, sealed, "                         \
    "coalesce(blame, 0), job.text, outputs, "                                                      \
    "(SELECT coalesce(sum(max(made.ended_ns - made.started_ns, 0)), 0) "                           \
    "FROM attempt AS made WHERE made.job = job.number AND made.started), " device ", " host        \
    " FROM job JOIN progress ON progress.job = job.number "                                        \
    "LEFT JOIN job AS origin ON origin.number = progress.origin "                                  \
    "LEFT JOIN attempt ON attempt.job = job.number AND attempt.attempt = verdict "                 \
    "ORDER BY job.number"
#define EACH_ATTEMPT(device, host)                                                                 \
    "SELECT job, id, attempt, started, stream, started_ns, ended_ns, guilty, status, executed, "   \
    "signal, exit_code, worker_pid, reached, kernel_name, kernel_hash, message, blame, " device    \
    ", " host                                                                                      \
    " FROM attempt JOIN job ON job.number = attempt.job ORDER BY attempt.job, attempt.attempt"

static const char *const each_job[2][2] = {
    {EACH_JOB("''", "''"), EACH_JOB("''", "attempt.host")},
    {EACH_JOB("attempt.device", "''"), EACH_JOB("attempt.device", "attempt.host")}};
static const char *const each_attempt[2][2] = {
    {EACH_ATTEMPT("''", "''"), EACH_ATTEMPT("''", "host")},
    {EACH_ATTEMPT("device", "''"), EACH_ATTEMPT("device", "host")}};

bool bhi_journal_each_job(struct bhi_journal *journal,
                          bool (*visit)(void *user, const struct bhi_job_record *record),
                          void *user) {
    return bhi_journal_each_row(journal, each_job[journal->has_device][journal->has_host], 0,
                                visit_job, &(struct bhi_job_visit){visit, user});
}

bool bhi_journal_each_attempt(struct bhi_journal *journal,
                              bool (*visit)(void *user, const struct bhi_attempt_record *record),
                              void *user) {
    return bhi_journal_each_row(journal, each_attempt[journal->has_device][journal->has_host], 0,
                                visit_attempt, &(struct bhi_attempt_visit){visit, user});
}
