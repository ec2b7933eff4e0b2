#include "batch/queue/queue.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "batch/graph/admission.h"
#include "batch/journal/journal.h"
#include "tool/clock.h"

struct bhi_queue {
    pthread_mutex_t adding; /* held by _add: only one runs at a time; taken before |mutex| */
    pthread_mutex_t mutex;  /* guards the states, edges and ids of |graph| */
    struct bhi_graph graph;
    struct bhi_paths paths;      /* used with |adding| */
    bool knows_paths;            /* |paths| has those of the loaded jobs; used with |adding| */
    uint32_t loaded;             /* nodes below this were loaded when it was opened */
    bool begun;                  /* the first _add has recorded what was loaded; |mutex| */
    bool retry_failed, dry;      /* from the options */
    struct bhi_journal *journal; /* NULL: no journal */
    struct bhi_journal_batch batch;
    char *jobs_path; /* owned; may be NULL */
    char *other;     /* owned; the file of the state's batch, if that is not |jobs_path|; or NULL */
    uint32_t retries;
};

/* -- opening --------------------------------------------------------------------------------- */

/* A loaded job is in the same state in the database, unless its state follows from another job;
 * such states are recorded with the first _add. */
static void note_restated(void *user, const struct bhi_job_node *node) {
    const struct bhi_queue *queue = user;
    bhi_graph_node(&queue->graph, bhi_node_index(node))->state_unrecorded = true;
}

static void note_state(void *user, const struct bhi_job_node *node) {
    struct bhi_queue *queue = user;
    if (!queue->journal) {
        return;
    }
    const struct bhi_note note = {.kind = BHI_NOTE_STATE,
                                  .state = node->state,
                                  .job = node->job.number,
                                  .origin =
                                      node->origin == BHI_NO_NODE
                                          ? 0
                                          : bhi_graph_node(&queue->graph, node->origin)->job.number,
                                  .time_ns = bhi_clock_calendar_ns()};
    bhi_journal_note(queue->journal, &note);
}

/* Is the file |given| the one at |recorded|? Standard input is itself. */
static bool is_same_file(const char *given, const char *recorded) {
    struct stat one, other;
    if (stat(given, &one) == 0 && stat(recorded, &other) == 0) {
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    }
    return !strcmp(given, recorded);
}

/* Sets |other|. Returns false if out of memory. */
static bool find_other(struct bhi_queue *queue) {
    const char *given = queue->jobs_path, *recorded = queue->batch.jobs_path;
    char *whole = NULL;
    if (!given || !recorded || !queue->batch.jobs || !strcmp(given, recorded)) {
        return true;
    }
    if (strcmp(recorded, "-") != 0 && recorded[0] != '/' &&
        asprintf(&whole, "%s/%s", queue->batch.cwd, recorded) < 0) {
        return false;
    }
    if (!whole && !(whole = strdup(recorded))) {
        return false;
    }
    if (strcmp(given, "-") != 0 && strcmp(recorded, "-") != 0 && is_same_file(given, whole)) {
        free(whole);
        return true;
    }
    queue->other = whole;
    return true;
}

static void refuse_second(const struct bhi_queue *queue, const char *folder,
                          struct bhi_complaint *complaint) {
    const uint64_t jobs = queue->batch.jobs;
    if (queue->other) {
        bhi_refuse(
            complaint,
            "%.400s has another batch, of %.300s (%llu job%s): give another folder (--state)",
            folder, bhi_queue_other_jobs(queue), (unsigned long long)jobs, jobs == 1 ? "" : "s");
        return;
    }
    bhi_refuse(complaint,
               "%.600s has a batch of %llu job%s: continue it (--resume), run some of it again "
               "(--resume --redo ID), or give another folder (--state)",
               folder, (unsigned long long)jobs, jobs == 1 ? "" : "s");
}

static enum bhi_queue_result open_journal(struct bhi_queue *queue,
                                          const struct bhi_queue_options *options,
                                          struct bhi_complaint *complaint) {
    enum bhi_queue_result result =
        bhi_journal_open(options, &queue->journal, &queue->batch, complaint);
    if (result != BHI_QUEUE_OK) {
        return result;
    }
    if (!find_other(queue)) {
        bhi_refuse(complaint, "out of memory");
        return BHI_QUEUE_ENVIRON;
    }
    if (queue->batch.jobs > 0 && !options->resume) {
        refuse_second(queue, options->folder, complaint);
        return BHI_QUEUE_BAD_INPUT;
    }
    result = bhi_journal_load(queue->journal, options, &queue->graph, complaint);
    if (result != BHI_QUEUE_OK) {
        return result;
    }
    if (!options->dry_run && !bhi_journal_accept(queue->journal, complaint)) {
        return BHI_QUEUE_ENVIRON;
    }
    bhi_graph_admit(&queue->graph, note_restated, queue);
    queue->loaded = queue->graph.admitted;
    queue->knows_paths = queue->begun = queue->loaded == 0;
    return BHI_QUEUE_OK;
}

enum bhi_queue_result bhi_queue_open(const struct bhi_queue_options *options,
                                     struct bhi_queue **out_queue,
                                     struct bhi_complaint *complaint) {
    enum bhi_queue_result result = BHI_QUEUE_ENVIRON;
    struct bhi_queue *queue = calloc(1, sizeof *queue);
    if (!queue || sodium_init() < 0) {
        free(queue);
        bhi_refuse(complaint, "out of memory");
        return BHI_QUEUE_ENVIRON;
    }
    pthread_mutex_init(&queue->adding, NULL);
    pthread_mutex_init(&queue->mutex, NULL);
    bhi_graph_init(&queue->graph);
    queue->retries = options->retries;
    queue->knows_paths = queue->begun = true;
    queue->retry_failed = options->retry_failed;
    queue->dry = options->dry_run;
    queue->jobs_path = options->jobs_path ? strdup(options->jobs_path) : NULL;
    if (options->jobs_path && !queue->jobs_path) {
        bhi_refuse(complaint, "out of memory");
    } else if (options->folder) {
        result = open_journal(queue, options, complaint);
    } else if (bhi_journal_batch_make(&queue->batch, complaint)) {
        result = BHI_QUEUE_OK;
    }
    if (result == BHI_QUEUE_OK && !bhi_paths_init(&queue->paths, queue->batch.cwd)) {
        bhi_refuse(complaint, "out of memory");
        result = BHI_QUEUE_ENVIRON;
    }
    if (result != BHI_QUEUE_OK) {
        (void)bhi_queue_close(queue);
        queue = NULL;
    }
    *out_queue = queue;
    return result;
}

bool bhi_queue_close(struct bhi_queue *queue) {
    if (!queue) {
        return true;
    }
    const bool good = bhi_journal_close(queue->journal);
    bhi_paths_fini(&queue->paths);
    bhi_graph_fini(&queue->graph);
    pthread_mutex_destroy(&queue->mutex);
    pthread_mutex_destroy(&queue->adding);
    free(queue->batch.cwd);
    free(queue->batch.jobs_path);
    free(queue->other);
    free(queue->jobs_path);
    free(queue);
    return good;
}

const char *bhi_queue_cwd(const struct bhi_queue *queue) {
    return queue->batch.cwd;
}

const char *bhi_queue_other_jobs(const struct bhi_queue *queue) {
    return queue->other && !strcmp(queue->other, "-") ? "standard input" : queue->other;
}

const char *bhi_queue_batch_id(const struct bhi_queue *queue) {
    return queue->batch.id;
}

/* -- adding ---------------------------------------------------------------------------------- */

/* Notes the paths of a loaded job, whose line may be new. */
static bool learn_node(struct bhi_queue *queue, const struct bhi_job_node *node,
                       enum bhi_queue_result *out_result, struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    struct bhi_job_spec spec;
    char at[BHI_PLACE];
    const char *twice = NULL;
    bool good = bhi_job_parse(node->job.text, strlen(node->job.text), &spec, &inner);
    if (!good) {
        return bhi_refuse(complaint, "job \"%.255s\" in the state folder: %.600s", node->job.id,
                          inner.text);
    }
    for (size_t p = 0; good && p < spec.read_count; p++) {
        good = bhi_paths_add(&queue->paths, node, spec.reads[p], false, NULL);
    }
    for (size_t p = 0; good && p < spec.write_count && !twice; p++) {
        bool again;
        good = bhi_paths_add(&queue->paths, node, spec.writes[p], true, &again);
        if (good && again && node->line_unrecorded) {
            twice = spec.writes[p];
        }
    }
    if (!good) {
        bhi_refuse(complaint, "out of memory");
    }
    if (twice) {
        *out_result = BHI_QUEUE_BAD_INPUT;
        bhi_refuse(complaint, "%s: \"%.200s\" writes %.200s twice",
                   bhi_admission_place(queue->jobs_path, node->job.line, at), node->job.id, twice);
    }
    bhi_job_spec_free(&spec);
    return good && !twice;
}

/* The paths of loaded jobs are only in their texts. They are read only when jobs are added; a
 * resumed batch without new jobs does not need them. */
static bool learn_paths(struct bhi_queue *queue, enum bhi_queue_result *out_result,
                        struct bhi_complaint *complaint) {
    *out_result = BHI_QUEUE_ENVIRON;
    for (uint32_t i = 0; i < queue->loaded && !queue->knows_paths; i++) {
        if (!learn_node(queue, bhi_graph_node(&queue->graph, i), out_result, complaint)) {
            bhi_paths_truncate(&queue->paths, 0);
            return false;
        }
    }
    queue->knows_paths = true;
    return true;
}

/* Admits the new jobs; with the first call, resumed jobs go on. Call it with |mutex| held. */
static void begin(struct bhi_queue *queue, struct bhi_admission *admission) {
    bhi_graph_admit(&queue->graph, note_state, queue);
    bhi_admission_keep(admission);
    for (uint32_t i = 0; i < queue->loaded && !queue->begun; i++) {
        struct bhi_job_node *node = bhi_graph_node(&queue->graph, i);
        node->state_unrecorded = node->reopened = node->redo_unrecorded = false;
    }
    queue->begun = true;
}

/* Undoes everything. Call it with |mutex| held. */
static void give_up(struct bhi_queue *queue, struct bhi_admission *admission) {
    if (admission->replacement_count) { /* the paths may be those of rejected lines */
        bhi_paths_truncate(&queue->paths, 0);
        queue->knows_paths = false;
    }
    bhi_admission_undo(admission);
}

/* Call it with |adding| held. */
static enum bhi_queue_result add(struct bhi_queue *queue, const struct bhi_job_spec *specs,
                                 size_t count, struct bhi_complaint *complaint) {
    enum bhi_queue_result result = BHI_QUEUE_ENVIRON;
    const struct bhi_queue_options resumed = {.resume = true, .retry_failed = queue->retry_failed};
    struct bhi_admission admission = {.graph = &queue->graph,
                                      .paths = &queue->paths,
                                      .loaded = queue->loaded,
                                      .retries = queue->retries,
                                      .jobs_path = queue->jobs_path};
    bhi_paths_forget(&queue->paths);
    pthread_mutex_lock(&queue->mutex);
    bool good = bhi_admission_replace(&admission, specs, count, &result, complaint);
    bool any = admission.replacement_count > 0;
    for (size_t i = 0; good && i < count && !any; i++) {
        any = !bhi_graph_find(&queue->graph, specs[i].id);
    }
    pthread_mutex_unlock(&queue->mutex);
    good = good && (!any || learn_paths(queue, &result, complaint));
    pthread_mutex_lock(&queue->mutex);
    good = good && bhi_admission_append(&admission, specs, count, &result, complaint);
    const bool changes = !queue->begun || queue->graph.count > queue->graph.admitted;
    if (!good) {
        give_up(queue, &admission);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (!good) {
        return result;
    }
    if (queue->dry) {
        (void)bhi_journal_close(queue->journal);
        queue->journal = NULL;
    }
    /* Other calls go on meanwhile: they ignore nodes that are not admitted. */
    if (queue->journal && changes) {
        result = bhi_journal_add(queue->journal, &queue->graph, queue->begun ? NULL : &resumed,
                                 complaint);
    }
    pthread_mutex_lock(&queue->mutex);
    if (result == BHI_QUEUE_OK) {
        begin(queue, &admission);
    } else {
        give_up(queue, &admission);
    }
    pthread_mutex_unlock(&queue->mutex);
    return result;
}

enum bhi_queue_result bhi_queue_add(struct bhi_queue *queue, const struct bhi_job_spec *specs,
                                    size_t count, struct bhi_complaint *complaint) {
    pthread_mutex_lock(&queue->adding);
    const enum bhi_queue_result result = add(queue, specs, count, complaint);
    pthread_mutex_unlock(&queue->adding);
    if (result == BHI_QUEUE_BAD_INPUT && queue->other) { /* perhaps that is the reason */
        const struct bhi_complaint inner = *complaint;
        bhi_refuse(complaint, "%.600s; the state folder has the batch of %.300s", inner.text,
                   bhi_queue_other_jobs(queue));
    }
    return result;
}

/* -- running --------------------------------------------------------------------------------- */

struct bhi_job *bhi_queue_take(struct bhi_queue *queue) {
    struct bhi_job_node *node = NULL;
    pthread_mutex_lock(&queue->mutex);
    if (queue->begun && (!queue->journal || !bhi_journal_broken(queue->journal, NULL))) {
        node = bhi_graph_take(&queue->graph, bhi_clock_ns());
    }
    pthread_mutex_unlock(&queue->mutex);
    return node ? &node->job : NULL;
}

/* A taken job is the first member of its node. */
static struct bhi_job_node *node_of(struct bhi_job *job) {
    return (struct bhi_job_node *)job;
}

void bhi_queue_started(struct bhi_queue *queue, struct bhi_job *job, uint32_t stream) {
    struct bhi_job_node *node = node_of(job);
    pthread_mutex_lock(&queue->mutex);
    /* An attempt that had found too little memory starts again under the same number. */
    node->tried += !node->started_here;
    node->started_here = true;
    if (queue->journal) {
        const struct bhi_note note = {.kind = BHI_NOTE_STARTED,
                                      .job = job->number,
                                      .tried = node->tried,
                                      .attempts = job->attempts + 1,
                                      .stream = stream,
                                      .time_ns = bhi_clock_calendar_ns()};
        bhi_journal_note(queue->journal, &note);
    }
    pthread_mutex_unlock(&queue->mutex);
}

void bhi_queue_sealed(struct bhi_queue *queue, struct bhi_job *job,
                      const struct bhi_attempt *attempt, const char *outputs,
                      const struct bhi_used *used, void (*then)(void *user, bool durable),
                      void *user) {
    if (!queue->journal) {
        then(user, true);
        return;
    }
    struct bhi_attempt copy = *attempt;
    pthread_mutex_lock(&queue->mutex);
    const struct bhi_note note = {.kind = BHI_NOTE_SEALED,
                                  .job = job->number,
                                  .tried = node_of(job)->tried,
                                  .time_ns = bhi_clock_calendar_ns(),
                                  .attempt = &copy,
                                  .outputs = outputs,
                                  .used = used ? *used : (struct bhi_used){0},
                                  .then = then,
                                  .user = user};
    bhi_journal_note(queue->journal, &note);
    pthread_mutex_unlock(&queue->mutex);
}

/* An earlier process sealed the job, and this one could not place its outputs. The job stays
 * sealed, here and in the record, and waits. Call it with |mutex| held. */
static bool give_back(struct bhi_queue *queue, struct bhi_job_node *node,
                      const struct bhi_attempt *attempt, uint64_t due_ns) {
    if (!node->job.sealed ||
        (attempt->next != BHI_JOB_WAITING && attempt->next != BHI_JOB_CANCELLED)) {
        return false;
    }
    bhi_graph_end(&queue->graph, node, BHI_JOB_WAITING, due_ns, note_state, queue);
    return true;
}

/* Counts the attempt in the job. Returns whether it is to be recorded. */
static bool count_attempt(struct bhi_job_node *node, const struct bhi_attempt *attempt) {
    struct bhi_job *job = &node->job;
    const bool finished = job->sealed && !node->started_here; /* an earlier process ran it */
    if (!node->started_here && !finished && attempt->verdict.status == BH_PENDING) {
        return false; /* it is given back */
    }
    if (!node->started_here && !finished) {
        node->tried++;
    }
    job->attempts += node->started_here;
    job->guilty += attempt->guilty;
    job->victim +=
        attempt->unproven || bh_verdict_classify(&attempt->verdict) == BH_STATUS_CLASS_VICTIM;
    job->unproven = attempt->unproven;
    return true;
}

void bhi_queue_ended(struct bhi_queue *queue, struct bhi_job *job,
                     const struct bhi_attempt *attempt, uint64_t delay_ns) {
    struct bhi_job_node *node = node_of(job);
    const uint64_t due_ns = delay_ns ? bhi_clock_ns() + delay_ns : 0;
    pthread_mutex_lock(&queue->mutex);
    if (give_back(queue, node, attempt, due_ns)) {
        pthread_mutex_unlock(&queue->mutex);
        return;
    }
    const bool counts = count_attempt(node, attempt);
    if (queue->journal) {
        struct bhi_attempt copy = *attempt;
        /* The attempt started earlier: the recorded start time stays. */
        if (!copy.started && (node->started_here || job->sealed)) {
            copy.started_ns = 0;
        }
        copy.started |= node->started_here || job->sealed;
        const struct bhi_note note = {.kind = BHI_NOTE_ENDED,
                                      .sealed_before = job->sealed && !node->started_here,
                                      .state = attempt->next,
                                      .job = job->number,
                                      .tried = counts ? node->tried : 0,
                                      .attempts = job->attempts,
                                      .guilty = job->guilty,
                                      .victim = job->victim,
                                      .time_ns = bhi_clock_calendar_ns(),
                                      .attempt = counts ? &copy : NULL};
        bhi_journal_note(queue->journal, &note);
    }
    node->started_here = job->sealed = job->interrupted = false;
    bhi_graph_end(&queue->graph, node, attempt->next, due_ns, note_state, queue);
    pthread_mutex_unlock(&queue->mutex);
}

void bhi_queue_counts(struct bhi_queue *queue, struct bhi_queue_counts *out_counts) {
    *out_counts = (struct bhi_queue_counts){0};
    const bool broken = bhi_queue_broken(queue, NULL);
    pthread_mutex_lock(&queue->mutex);
    for (int i = 0; i < BHI_JOB_STATES; i++) {
        out_counts->of[i] = queue->graph.of[i];
    }
    out_counts->total = queue->graph.admitted;
    out_counts->takeable =
        bhi_graph_takeable(&queue->graph, bhi_clock_ns(), &out_counts->next_due_ns);
    pthread_mutex_unlock(&queue->mutex);
    if (broken) {
        out_counts->takeable = 0;
    }
}

bool bhi_queue_runs_anew(struct bhi_queue *queue, const char *id) {
    pthread_mutex_lock(&queue->mutex);
    const struct bhi_job_node *node = bhi_graph_find(&queue->graph, id);
    const bool anew = node && node->reopened;
    pthread_mutex_unlock(&queue->mutex);
    return anew;
}

/* -- the journal's --------------------------------------------------------------------------- */

bool bhi_queue_broken(struct bhi_queue *queue, struct bhi_complaint *complaint) {
    return queue->journal && bhi_journal_broken(queue->journal, complaint);
}

bool bhi_queue_flush(struct bhi_queue *queue) {
    return !queue->journal || bhi_journal_flush(queue->journal);
}

bool bhi_queue_each_job(struct bhi_queue *queue,
                        bool (*visit)(void *user, const struct bhi_job_record *record),
                        void *user) {
    return queue->journal && bhi_journal_each_job(queue->journal, visit, user);
}

bool bhi_queue_each_attempt(struct bhi_queue *queue,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user) {
    return queue->journal && bhi_journal_each_attempt(queue->journal, visit, user);
}

bool bhi_queue_each_file(struct bhi_queue *queue,
                         bool (*visit)(void *user, uint64_t number, const char *path,
                                       const char *mark),
                         void *user) {
    return queue->journal && bhi_journal_each_file(queue->journal, visit, user);
}

bool bhi_queue_each_user(struct bhi_queue *queue, uint64_t file,
                         bool (*visit)(void *user, const char *id), void *user) {
    return queue->journal && bhi_journal_each_user(queue->journal, file, visit, user);
}
