#include "batch/graph/admission.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SHOWN = 300 }; /* bytes of the jobs file's name in a message */

/* Keeps the end of a long path, because it says more than the beginning. */
static const char *shorten(const char *path) {
    const size_t length = strlen(path);
    if (length > PATH_SHOWN) {
        path += length - PATH_SHOWN;
    }
    while (length > PATH_SHOWN && ((unsigned char)*path & 0xc0) == 0x80) {
        path++; /* not in the middle of a UTF-8 character */
    }
    return path;
}

const char *bhi_admission_place(const char *jobs_path, size_t line, char out[BHI_PLACE]) {
    if (!jobs_path || !strcmp(jobs_path, "-")) {
        snprintf(out, BHI_PLACE, "line %zu", line);
        return out;
    }
    const char *shown = shorten(jobs_path);
    snprintf(out, BHI_PLACE, "%s%s:%zu", shown == jobs_path ? "" : "…", shown, line);
    return out;
}

static const char *place(const struct bhi_admission *admission, size_t line, char out[BHI_PLACE]) {
    return bhi_admission_place(admission->jobs_path, line, out);
}

static bool out_of_memory(struct bhi_complaint *complaint, enum bhi_queue_result *out_result) {
    *out_result = BHI_QUEUE_ENVIRON;
    return bhi_refuse(complaint, "out of memory");
}

/* -- lines that are there already ------------------------------------------------------------ */

static bool needs_the_same(const struct bhi_graph *graph, const struct bhi_job_node *node,
                           const struct bhi_job_spec *spec) {
    size_t count = 0;
    for (uint32_t e = node->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
        const char *id = bhi_graph_node(graph, graph->edges[e].node)->job.id;
        bool found = false;
        for (size_t i = 0; i < spec->depends_count && !found; i++) {
            found = !strcmp(spec->depends_on[i], id);
        }
        if (!found) {
            return false;
        }
        count++;
    }
    return count == spec->depends_count; /* both are sets, so equal counts mean equal sets */
}

static bool refuse_line(const struct bhi_admission *admission, const struct bhi_job_node *node,
                        const struct bhi_job_spec *spec, struct bhi_complaint *complaint) {
    char at[BHI_PLACE];
    const bool failed = node->state == BHI_JOB_FAILED || node->state == BHI_JOB_QUARANTINED;
    if (failed) {
        return bhi_refuse(complaint,
                          "%s: the job \"%.255s\" has %s, and its line has changed since: "
                          "--retry-failed runs it as this line says",
                          place(admission, spec->line, at), spec->id,
                          node->state == BHI_JOB_FAILED ? "failed" : "been quarantined");
    }
    return bhi_refuse(complaint,
                      "%s: the job \"%.255s\" differs from the one in the state folder: run it "
                      "again as this line says (--redo %.255s), undo the change, or give the job a "
                      "new id",
                      place(admission, spec->line, at), spec->id, spec->id);
}

static bool refuse_twice(const struct bhi_admission *admission, const struct bhi_job_spec *spec,
                         size_t first, struct bhi_complaint *complaint) {
    char at[BHI_PLACE];
    return bhi_refuse(complaint, "%s: the id \"%.255s\" is given twice, first in line %zu",
                      place(admission, spec->line, at), spec->id, first);
}

/* Gives |node| the line of |spec|. */
static bool replace_one(struct bhi_admission *admission, struct bhi_job_node *node,
                        const struct bhi_job_spec *spec, enum bhi_queue_result *out_result,
                        struct bhi_complaint *complaint) {
    char at[BHI_PLACE];
    struct bhi_job *job = &node->job;
    if (!node->reopened) {
        return refuse_line(admission, node, spec, complaint);
    }
    if (!needs_the_same(admission->graph, node, spec)) {
        return bhi_refuse(complaint,
                          "%s: the job \"%.255s\" depends on other jobs than in the state folder: "
                          "its \"depends_on\" cannot change; give the job a new id",
                          place(admission, spec->line, at), spec->id);
    }
    char *text = BHI_ARRAY_RESERVE(admission->replacements, admission->replacement_capacity,
                                   admission->replacement_count + 1)
                     ? strdup(spec->text)
                     : NULL;
    if (!text) {
        return out_of_memory(complaint, out_result);
    }
    admission->replacements[admission->replacement_count++] =
        (struct bhi_replacement){.node = node,
                                 .text = (char *)job->text,
                                 .line = job->line,
                                 .priority = job->priority,
                                 .retries = job->retries};
    job->text = text;
    job->line = spec->line;
    job->priority = spec->priority;
    job->retries = spec->retries < 0 ? admission->retries : (uint32_t)spec->retries;
    node->line_unrecorded = true;
    return true;
}

/* Returns the node of an earlier process that |spec| names; NULL: the job is new. */
static struct bhi_job_node *find_loaded(const struct bhi_admission *admission,
                                        const struct bhi_job_spec *spec) {
    struct bhi_job_node *node = bhi_graph_find(admission->graph, spec->id);
    return node && bhi_node_index(node) < admission->loaded ? node : NULL;
}

bool bhi_admission_replace(struct bhi_admission *admission, const struct bhi_job_spec *specs,
                           size_t count, enum bhi_queue_result *out_result,
                           struct bhi_complaint *complaint) {
    bool good = true;
    *out_result = BHI_QUEUE_BAD_INPUT;
    size_t seen = 0;
    while (good && seen < count) {
        const struct bhi_job_spec *spec = &specs[seen++];
        struct bhi_job_node *node = find_loaded(admission, spec);
        if (!node) {
            continue;
        }
        if (node->given) {
            good = refuse_twice(admission, spec, specs[node->given - 1].line, complaint);
        } else if (strcmp(node->job.text, spec->text) != 0) {
            good = replace_one(admission, node, spec, out_result, complaint);
        }
        if (!node->given) {
            node->given = (uint32_t)seen;
        }
    }
    for (size_t i = 0; i < seen; i++) {
        struct bhi_job_node *node = find_loaded(admission, &specs[i]);
        if (node) {
            node->given = 0; /* a later call may give it again */
        }
    }
    if (admission->replacement_count) {
        bhi_graph_reorder(admission->graph);
    }
    return good;
}

void bhi_admission_keep(struct bhi_admission *admission) {
    for (size_t i = 0; i < admission->replacement_count; i++) {
        admission->replacements[i].node->line_unrecorded = false; /* the caller has recorded it */
        free(admission->replacements[i].text);
    }
    free(admission->replacements);
    admission->replacements = NULL;
    admission->replacement_count = admission->replacement_capacity = 0;
}

static void restore(struct bhi_admission *admission) {
    for (size_t i = 0; i < admission->replacement_count; i++) {
        const struct bhi_replacement *old = &admission->replacements[i];
        struct bhi_job *job = &old->node->job;
        free((char *)job->text);
        job->text = old->text;
        job->line = old->line;
        job->priority = old->priority;
        job->retries = old->retries;
        old->node->line_unrecorded = false;
    }
    if (admission->replacement_count) {
        bhi_graph_reorder(admission->graph);
    }
    free(admission->replacements);
    admission->replacements = NULL;
    admission->replacement_count = admission->replacement_capacity = 0;
}

/* -- new ones -------------------------------------------------------------------------------- */

static bool append_one(const struct bhi_admission *admission, const struct bhi_job_spec *spec,
                       enum bhi_queue_result *out_result, struct bhi_complaint *complaint) {
    struct bhi_graph *graph = admission->graph;
    struct bhi_job_node *node = bhi_graph_find(graph, spec->id);
    if (node && bhi_node_index(node) < admission->loaded) {
        return true; /* bhi_admission_replace has checked it */
    }
    if (node) {
        return refuse_twice(admission, spec, node->job.line, complaint);
    }
    node = bhi_graph_append(graph, spec->id, spec->text);
    if (!node) {
        return out_of_memory(complaint, out_result);
    }
    node->job.line = spec->line;
    node->job.priority = spec->priority;
    if (spec->depends_count == 0) {
        node->state = BHI_JOB_WAITING; /* recorded as such from the start: nobody need be told */
    }
    node->job.retries = spec->retries < 0 ? admission->retries : (uint32_t)spec->retries;
    return true;
}

/* Links |node|, which |spec| describes, with what it depends on. */
static bool link_one(const struct bhi_admission *admission, struct bhi_job_node *node,
                     const struct bhi_job_spec *spec, enum bhi_queue_result *out_result,
                     struct bhi_complaint *complaint) {
    char at[BHI_PLACE];
    for (size_t i = 0; i < spec->depends_count; i++) {
        struct bhi_job_node *needed = bhi_graph_find(admission->graph, spec->depends_on[i]);
        if (!needed) {
            return bhi_refuse(complaint, "%s: \"%.200s\" depends on \"%.200s\", which is not a job",
                              place(admission, spec->line, at), spec->id, spec->depends_on[i]);
        }
        if (!bhi_graph_link(admission->graph, node, needed)) {
            return out_of_memory(complaint, out_result);
        }
    }
    for (size_t i = 0; i < spec->read_count; i++) {
        if (!bhi_paths_add(admission->paths, node, spec->reads[i], false, NULL)) {
            return out_of_memory(complaint, out_result);
        }
    }
    for (size_t i = 0; i < spec->write_count; i++) {
        bool twice;
        if (!bhi_paths_add(admission->paths, node, spec->writes[i], true, &twice)) {
            return out_of_memory(complaint, out_result);
        }
        if (twice) {
            return bhi_refuse(complaint, "%s: \"%.200s\" writes %.200s twice",
                              place(admission, spec->line, at), spec->id, spec->writes[i]);
        }
    }
    return true;
}

static bool rank(const struct bhi_admission *admission, enum bhi_queue_result *out_result,
                 struct bhi_complaint *complaint) {
    static const char circle[] = ": jobs depend on each other in a circle: ";
    char at[BHI_PLACE], names[sizeof complaint->text - sizeof circle];
    struct bhi_job_node *cycle;
    if (bhi_graph_rank(admission->graph, &cycle)) {
        return true;
    }
    if (!cycle) {
        return out_of_memory(complaint, out_result);
    }
    place(admission, cycle->job.line, at);
    bhi_graph_name_cycle(admission->graph, cycle, names, sizeof names - strlen(at));
    return bhi_refuse(complaint, "%s%s%s", at, circle, names);
}

static bool check_paths(const struct bhi_admission *admission, enum bhi_queue_result *out_result,
                        struct bhi_complaint *complaint) {
    char at[BHI_PLACE];
    struct bhi_conflict conflict;
    /* With replaced lines, all jobs are checked: a new line may collide with an old one. */
    const uint32_t first = admission->replacement_count ? 0 : admission->graph->admitted;
    if (bhi_paths_check(admission->paths, admission->graph, first, &conflict)) {
        return true;
    }
    if (!conflict.node) {
        return out_of_memory(complaint, out_result);
    }
    return bhi_refuse(complaint,
                      "%s: \"%.100s\" %s %.200s, which \"%.100s\" (line %zu) %s: one of them must "
                      "depend on the other",
                      place(admission, conflict.node->job.line, at), conflict.node->job.id,
                      conflict.node_writes ? "writes" : "reads", conflict.path,
                      conflict.other->job.id, conflict.other->job.line,
                      conflict.other_writes ? "writes, too" : "reads");
}

static void forget(const struct bhi_admission *admission) {
    bhi_graph_truncate(admission->graph);
    bhi_paths_truncate(admission->paths, admission->graph->admitted);
}

bool bhi_admission_append(const struct bhi_admission *admission, const struct bhi_job_spec *specs,
                          size_t count, enum bhi_queue_result *out_result,
                          struct bhi_complaint *complaint) {
    bool good = true;
    struct bhi_graph *graph = admission->graph;
    *out_result = BHI_QUEUE_BAD_INPUT;
    for (size_t i = 0; good && i < count; i++) {
        good = append_one(admission, &specs[i], out_result, complaint);
    }
    for (size_t i = 0; good && i < count; i++) {
        struct bhi_job_node *node = bhi_graph_find(graph, specs[i].id);
        if (bhi_node_index(node) >= graph->admitted) {
            good = link_one(admission, node, &specs[i], out_result, complaint);
        }
    }
    good = good && rank(admission, out_result, complaint) &&
           check_paths(admission, out_result, complaint);
    if (!good) {
        forget(admission);
    } else {
        *out_result = BHI_QUEUE_OK;
    }
    return good;
}

void bhi_admission_undo(struct bhi_admission *admission) {
    forget(admission);
    restore(admission);
}
