#include "cli/batch_jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"
#include "batch/graph/names.h"
#include "batch/job/file.h"
#include "batch/runner/preflight.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/text.h"

enum {
    MOST_NOT_JSON = 10, /* lines that are not JSON and are listed */
    MOST_FAULTS = 50,   /* errors that are listed */
};

static void free_bad(const struct bhi_report_bad *bad) {
    free((char *)bad->id);
    free((char *)bad->origin);
    free((char *)bad->message);
}

/* Keeps a bad line for the report, which lists a line once, however many errors it has. */
static void note_bad(struct bhi_batch_jobs *jobs, size_t line, const char *id, const char *origin,
                     const char *message) {
    char name[BHI_JOB_ID + 1];
    const bool named = *id && bhi_names_find(&jobs->bad_ids, id) == BHI_NO_NAME;
    snprintf(name, sizeof name, "\n%zu", jobs->bads_count);
    if (!BHI_ARRAY_RESERVE(jobs->bads, jobs->bads_capacity, jobs->bads_count + 1)) {
        jobs->no_memory = true;
        return;
    }
    const struct bhi_report_bad bad = {
        .line = line, .id = strdup(id), .origin = strdup(origin), .message = strdup(message)};
    if (!bad.id || !bad.origin || !bad.message ||
        bhi_names_add(&jobs->bad_ids, named ? id : name) == BHI_NO_NAME) {
        free_bad(&bad);
        jobs->no_memory = true;
        return;
    }
    jobs->bads[jobs->bads_count++] = bad;
}

/* A file that holds something else than jobs has thousands of lines that are not JSON. The first
 * few are listed, then their number is printed. */
static bool complaint_repeats(struct bhi_batch_jobs *jobs, const struct bhi_complaint *complaint) {
    return complaint->not_json && ++jobs->not_json > MOST_NOT_JSON;
}

/* Lines with one cause are one error; NULL: the line itself is the cause. */
static void note_fault(struct bhi_batch_jobs *jobs, size_t line, bool follows, const char *cause,
                       const char *text) {
    char own[32];
    snprintf(own, sizeof own, "\n%zu", jobs->fault_count);
    cause = cause ? cause : own;
    const uint32_t known = bhi_names_find(&jobs->causes, cause);
    if (known != BHI_NO_NAME) {
        jobs->faults[known].more += jobs->faults[known].last != line;
        jobs->faults[known].last = line;
        return;
    }
    char *copy = strdup(text);
    if (!copy || !BHI_ARRAY_RESERVE(jobs->faults, jobs->fault_capacity, jobs->fault_count + 1) ||
        bhi_names_add(&jobs->causes, cause) == BHI_NO_NAME) { /* last: each name has its fault */
        free(copy);
        jobs->no_memory = true;
        return;
    }
    jobs->faults[jobs->fault_count] = (struct bhi_batch_fault){
        .line = line, .last = line, .order = jobs->fault_count, .follows = follows, .text = copy};
    jobs->fault_count++;
}

static void tell(struct bhi_batch_jobs *jobs, size_t line, const char *id, const char *origin,
                 const char *cause, const struct bhi_complaint *complaint) {
    if (!complaint_repeats(jobs, complaint)) {
        note_fault(jobs, line, *origin, cause, complaint->text);
    }
    if (line != jobs->bad_line) {
        jobs->bad++;
        note_bad(jobs, line, id, origin, complaint->text);
    }
    jobs->bad_line = line;
}

BHI_ORDER_2(by_line, struct bhi_batch_fault, line, order)

/* A line is in |bads| once. */
BHI_ORDER(by_bad_line, struct bhi_report_bad, line)

/* Prints the errors, which are sorted, as many as fit, and frees them. */
static void print_faults(struct bhi_batch_jobs *jobs, const char *name) {
    char text[1024];
    size_t causes = 0, shown[2] = {0}; /* [1]: of those that follow from others */
    for (size_t i = 0; i < jobs->fault_count; i++) {
        causes += !jobs->faults[i].follows;
    }
    const size_t most[2] = {MOST_FAULTS, causes < MOST_FAULTS ? MOST_FAULTS - causes : 0};
    for (size_t i = 0; i < jobs->fault_count; i++) {
        const struct bhi_batch_fault *fault = &jobs->faults[i];
        if (shown[fault->follows] < most[fault->follows]) {
            shown[fault->follows]++;
            fprintf(stderr, "%s:%zu: %s", name, fault->line,
                    bhi_text_clean(text, sizeof text, fault->text));
            fprintf(stderr, fault->more ? "; the same for %zu more line%s\n" : "\n", fault->more,
                    fault->more == 1 ? "" : "s");
        }
        free(fault->text);
    }
    if (jobs->fault_count > shown[0] + shown[1]) {
        fprintf(stderr, "%s: and %zu more errors\n", name, jobs->fault_count - shown[0] - shown[1]);
    }
    jobs->fault_count = 0;
    bhi_names_truncate(&jobs->causes, 0);
}

void bhi_batch_jobs_tell(struct bhi_batch_jobs *jobs) {
    char name[600];
    bhi_text_clean(name, sizeof name, jobs->name ? jobs->name : "");
    if (jobs->bads_count) {
        qsort(jobs->bads, jobs->bads_count, sizeof *jobs->bads, by_bad_line);
    }
    if (jobs->fault_count) {
        qsort(jobs->faults, jobs->fault_count, sizeof *jobs->faults, by_line);
    }
    print_faults(jobs, name);
    if (jobs->not_json > MOST_NOT_JSON && !jobs->told_not_json) {
        bhi_complain("batch",
                     "%s: %zu lines are not JSON, the first %d are listed: is it a file of jobs?",
                     jobs->name, jobs->not_json, MOST_NOT_JSON);
        jobs->told_not_json = true;
    }
}

static int out_of_memory(void) {
    return bhi_complain_memory("batch");
}

/* -- reading --------------------------------------------------------------------------------- */

static bool take_line(void *user, size_t line, struct bhi_job_spec *spec, const char *id,
                      const struct bhi_complaint *complaint) {
    struct bhi_batch_jobs *jobs = user;
    if (!spec) {
        tell(jobs, line, id, "", NULL, complaint);
        return true;
    }
    if (!BHI_ARRAY_RESERVE(jobs->specs, jobs->capacity, jobs->count + 1)) {
        bhi_job_spec_free(spec);
        jobs->capacity = 0; /* marks that memory has run out */
        return false;
    }
    jobs->specs[jobs->count++] = *spec;
    return true;
}

int bhi_batch_jobs_read(struct bhi_batch_jobs *jobs, const char *path) {
    struct bhi_complaint complaint;
    *jobs = (struct bhi_batch_jobs){0};
    bhi_names_init(&jobs->bad_ids);
    bhi_names_init(&jobs->made);
    bhi_names_init(&jobs->causes);
    jobs->path = path;
    jobs->name = strcmp(path, "-") ? path : "standard input";
    int error;
    const bool read = bhi_job_file_read(path, take_line, jobs, &error, &complaint);
    if (bhi_interrupt_signal()) {
        bhi_complain_cancelled("batch", bhi_interrupt_exit_status(), "");
        return bhi_interrupt_exit_status();
    }
    if (!read && error != ENOMEM) {
        return bhi_complain_usage("batch", "%s", complaint.text);
    }
    jobs->no_memory |= !read;
    if (jobs->no_memory || (jobs->count && !jobs->capacity)) {
        return out_of_memory();
    }
    return BHI_EXIT_READY;
}

/* -- dropping -------------------------------------------------------------------------------- */

static void drop(struct bhi_batch_jobs *jobs, const bool *dropped) {
    size_t kept = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        if (dropped[i]) {
            bhi_job_spec_free(&jobs->specs[i]);
        } else {
            jobs->specs[kept++] = jobs->specs[i];
        }
    }
    jobs->count = kept;
}

struct flight {
    struct bhi_batch_jobs *jobs;
    bool *dropped;
    bool no_memory;
};

static void take_fault(void *user, size_t index, const char *cause,
                       const struct bhi_complaint *complaint) {
    struct flight *flight = user;
    flight->no_memory |= index == flight->jobs->count;
    if (flight->no_memory) {
        return;
    }
    flight->dropped[index] = true;
    const struct bhi_job_spec *spec = &flight->jobs->specs[index];
    tell(flight->jobs, spec->line, spec->id, "", cause, complaint);
}

/* Ids of the queue's jobs: all, or only those that will not run any more. A sealed job is
 * complete. */
struct known {
    struct bhi_queue *queue;
    struct bhi_names names;
    bool ended_only, no_memory;
};

static bool note_known(void *user, const struct bhi_job_record *record) {
    struct known *known = user;
    const bool ended = (record->state == BHI_JOB_DONE || record->sealed ||
                        record->state == BHI_JOB_FAILED || record->state == BHI_JOB_QUARANTINED) &&
                       !bhi_queue_runs_anew(known->queue, record->id);
    if (known->ended_only && !ended) {
        return true;
    }
    known->no_memory = bhi_names_add(&known->names, record->id) == BHI_NO_NAME;
    return !known->no_memory;
}

static bool note_all(struct known *known, struct bhi_queue *queue) {
    known->queue = queue;
    return !queue || (bhi_queue_each_job(queue, note_known, known) && !known->no_memory);
}

int bhi_batch_jobs_check(struct bhi_batch_jobs *jobs, struct bhi_queue *queue, const char *folder,
                         const char *state) {
    const struct bhi_preflight_own own = {.jobs = strcmp(jobs->path, "-") != 0 ? jobs->path
                                                                               : "/dev/stdin",
                                          .state = state,
                                          .device = jobs->device,
                                          .contents = jobs->contents,
                                          .makes = jobs->makes,
                                          .made = &jobs->made};
    struct known ended = {.ended_only = true};
    bool *skipped = calloc(jobs->count + 1, sizeof *skipped);
    struct flight flight = {.jobs = jobs,
                            .dropped = calloc(jobs->count + 1, sizeof *flight.dropped)};
    bhi_names_init(&ended.names);
    bool good = skipped && flight.dropped && note_all(&ended, queue);
    if (good) {
        for (size_t i = 0; i < jobs->count; i++) {
            skipped[i] = (jobs->roots_only && jobs->specs[i].depends_count) ||
                         bhi_names_find(&ended.names, jobs->specs[i].id) != BHI_NO_NAME;
        }
        bhi_preflight(jobs->specs, jobs->count, skipped, folder, &own, take_fault, &flight);
        drop(jobs, flight.dropped);
    }
    bhi_names_fini(&ended.names);
    free(skipped);
    free(flight.dropped);
    return good && !flight.no_memory && !jobs->no_memory ? BHI_EXIT_READY : out_of_memory();
}

/* Returns the first dependency of |spec| that will not exist, or NULL. */
static const char *find_orphan(const struct bhi_job_spec *spec, const struct known *known,
                               const struct bhi_names *ids, const bool *dropped) {
    for (size_t i = 0; i < spec->depends_count; i++) {
        const uint32_t name = bhi_names_find(ids, spec->depends_on[i]);
        if ((name == BHI_NO_NAME || dropped[name]) &&
            bhi_names_find(&known->names, spec->depends_on[i]) == BHI_NO_NAME) {
            return spec->depends_on[i];
        }
    }
    return NULL;
}

struct fall {
    struct bhi_batch_jobs *jobs;
    const struct known *known;
    const struct bhi_names *ids; /* number of an id = index of the job */
    bool *dropped;
    size_t *queue, count;  /* the dropped jobs, in order; owned */
    size_t *first, *edges; /* job |i| is needed by first[i] to first[i + 1] of |edges|; owned */
};

static bool begin_fall(struct fall *fall) {
    const struct bhi_batch_jobs *jobs = fall->jobs;
    size_t total = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        total += jobs->specs[i].depends_count;
    }
    fall->queue = calloc(jobs->count + 1, sizeof *fall->queue);
    fall->first = calloc(jobs->count + 2, sizeof *fall->first);
    fall->edges = calloc(total + 1, sizeof *fall->edges);
    if (!fall->queue || !fall->first || !fall->edges) {
        return false;
    }
    /* The first pass counts the edges, the second places them. Placing moves each first[] to where
     * the next job's edges begin. */
    for (int placing = 0; placing < 2; placing++) {
        for (size_t i = 0; i < jobs->count; i++) {
            for (size_t k = 0; k < jobs->specs[i].depends_count; k++) {
                const uint32_t name = bhi_names_find(fall->ids, jobs->specs[i].depends_on[k]);
                if (name == BHI_NO_NAME) {
                    continue;
                }
                if (placing) {
                    fall->edges[fall->first[name + 1]++] = i;
                } else if ((size_t)name + 2 <= jobs->count) {
                    fall->first[name + 2]++;
                }
            }
        }
        for (size_t i = 1; !placing && i <= jobs->count; i++) {
            fall->first[i] += fall->first[i - 1];
        }
    }
    return true;
}

static void drop_orphan(struct fall *fall, size_t index) {
    struct bhi_complaint complaint;
    const struct bhi_job_spec *spec = &fall->jobs->specs[index];
    const char *orphan =
        fall->dropped[index] ? NULL : find_orphan(spec, fall->known, fall->ids, fall->dropped);
    if (!orphan) {
        return;
    }
    fall->dropped[index] = true;
    fall->queue[fall->count++] = index;
    const uint32_t name = bhi_names_find(&fall->jobs->bad_ids, orphan);
    const struct bhi_report_bad *bad = name == BHI_NO_NAME ? NULL : &fall->jobs->bads[name];
    char origin[BHI_JOB_ID + 1] = "";
    if (!bad) {
        bhi_refuse(&complaint, "it depends on \"%.255s\", which is not a job", orphan);
    } else {
        bhi_refuse(&complaint, "it depends on \"%.255s\", %s", orphan,
                   *bad->origin ? "which cannot run either" : "whose line is bad");
    }
    if (bad) {
        snprintf(origin, sizeof origin, "%s", *bad->origin ? bad->origin : bad->id);
    }
    tell(fall->jobs, spec->line, spec->id, origin, NULL, &complaint);
}

/* A dropped job can make others orphans, also earlier ones in the file. */
static bool drop_orphans(struct fall *fall) {
    const bool good = begin_fall(fall);
    for (size_t i = 0; good && i < fall->jobs->count; i++) {
        drop_orphan(fall, i);
    }
    for (size_t at = 0; good && at < fall->count; at++) {
        const size_t fallen = fall->queue[at];
        for (size_t e = fall->first[fallen]; e < fall->first[fallen + 1]; e++) {
            drop_orphan(fall, fall->edges[e]);
        }
    }
    free(fall->queue);
    free(fall->first);
    free(fall->edges);
    if (good) {
        drop(fall->jobs, fall->dropped);
    }
    return good;
}

int bhi_batch_jobs_drop_orphans(struct bhi_batch_jobs *jobs, struct bhi_queue *queue) {
    struct known known = {0};
    struct bhi_names ids;
    bool *dropped = calloc(jobs->count + 1, sizeof *dropped);
    bhi_names_init(&known.names);
    bhi_names_init(&ids);
    bool good = dropped && note_all(&known, queue), twice = false;
    for (size_t i = 0; good && !twice && i < jobs->count; i++) {
        twice = bhi_names_find(&ids, jobs->specs[i].id) != BHI_NO_NAME;
        good = twice || bhi_names_add(&ids, jobs->specs[i].id) != BHI_NO_NAME;
    }
    struct fall fall = {.jobs = jobs, .known = &known, .ids = &ids, .dropped = dropped};
    if (good && !twice) { /* otherwise the queue reports this, with both lines */
        good = drop_orphans(&fall);
    }
    bhi_names_fini(&known.names);
    bhi_names_fini(&ids);
    free(dropped);
    return good ? BHI_EXIT_READY : out_of_memory();
}

int bhi_batch_jobs_drop_known(struct bhi_batch_jobs *jobs, struct bhi_queue *queue) {
    struct known known = {0};
    size_t kept = 0;
    bhi_names_init(&known.names);
    const bool good = note_all(&known, queue);
    for (size_t i = 0; good && i < jobs->bads_count; i++) {
        if (*jobs->bads[i].id && bhi_names_find(&known.names, jobs->bads[i].id) != BHI_NO_NAME) {
            free_bad(&jobs->bads[i]);
        } else {
            jobs->bads[kept++] = jobs->bads[i];
        }
    }
    if (good) {
        jobs->bads_count = kept;
    }
    bhi_names_fini(&known.names);
    return good ? BHI_EXIT_READY : out_of_memory();
}

void bhi_batch_jobs_free(struct bhi_batch_jobs *jobs) {
    for (size_t i = 0; i < jobs->bads_count; i++) {
        free_bad(&jobs->bads[i]);
    }
    free(jobs->bads);
    for (size_t i = 0; i < jobs->fault_count; i++) {
        free(jobs->faults[i].text);
    }
    free(jobs->faults);
    bhi_names_fini(&jobs->bad_ids);
    bhi_names_fini(&jobs->made);
    bhi_names_fini(&jobs->causes);
    for (size_t i = 0; i < jobs->count; i++) {
        bhi_job_spec_free(&jobs->specs[i]);
    }
    free(jobs->specs);
    memset(jobs, 0, sizeof *jobs);
}
