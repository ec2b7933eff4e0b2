/* Admission: checks jobs before the graph takes them, and says what is wrong with one. */
#ifndef BHI_BATCH_GRAPH_ADMISSION_H
#define BHI_BATCH_GRAPH_ADMISSION_H

#include "batch/graph/paths.h"

/* A line that takes the place of one that failed; what was there before. */
struct bhi_replacement {
    struct bhi_job_node *node;
    char *text; /* owned: the old one */
    size_t line;
    int32_t priority;
    uint32_t retries;
};

struct bhi_admission {
    struct bhi_graph *graph;
    struct bhi_paths *paths;
    uint32_t loaded;  /* nodes below this come from an earlier process: they may be given again */
    uint32_t retries; /* of jobs that give none */
    const char *jobs_path;                /* for complaints; may be NULL */
    struct bhi_replacement *replacements; /* owned */
    size_t replacement_count, replacement_capacity;
};

/* Where a line is: "jobs.jsonl:7", or "line 7" (|jobs_path| may be NULL). Returns |out|. */
enum { BHI_PLACE = 336 };
const char *bhi_admission_place(const char *jobs_path, size_t line, char out[BHI_PLACE]);

/* Gives nodes that had failed and are taken up (again) the specs' lines, where those are others.
 * False: a line is another one where that cannot be; the complaint says what can be done.
 * bhi_admission_keep or bhi_admission_undo follows, whatever it returns. */
bool bhi_admission_replace(struct bhi_admission *admission, const struct bhi_job_spec *specs,
                           size_t count, enum bhi_queue_result *out_result,
                           struct bhi_complaint *complaint);
/* The new lines stay. */
void bhi_admission_keep(struct bhi_admission *admission);

/* Appends the specs' jobs, with links, ranks and paths. False: the complaint names file and line,
 * and nothing is appended. What is appended is not admitted: bhi_graph_admit or
 * bhi_admission_undo follows. |out_result| says whose fault it is. */
bool bhi_admission_append(const struct bhi_admission *admission, const struct bhi_job_spec *specs,
                          size_t count, enum bhi_queue_result *out_result,
                          struct bhi_complaint *complaint);
/* Takes back what was appended, and the new lines. */
void bhi_admission_undo(struct bhi_admission *admission);

#endif
