/* What the journal writes: jobs when they are added, and notes. */
#include "batch/journal/database.h"
#include "batch/journal/journal.h"
#include "tool/clock.h"

/* -- notes ----------------------------------------------------------------------------------- */

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
        (void)((rc = write_attempt(journal, note)) != SQLITE_OK ||
               (rc = bhi_used_rows_write(journal, job, (int64_t)note->tried, &note->used)) !=
                   SQLITE_OK ||
               (rc = bhi_journal_run(journal, BHI_SQL_SEALED, "it", job, note->outputs)) !=
                   SQLITE_OK);
        return rc;
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

/* -- adding ---------------------------------------------------------------------------------- */

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
