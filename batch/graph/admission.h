/* Admission: checks jobs before the graph takes them, and says what is wrong with a job. */
#ifndef BHI_BATCH_GRAPH_ADMISSION_H
#define BHI_BATCH_GRAPH_ADMISSION_H

#include "batch/graph/paths.h"

/* A job whose failed line was replaced, with the old line. */
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
    uint32_t loaded;       /* nodes below this are of an earlier process: they may be given again */
    uint32_t retries;      /* for jobs that give no number */
    const char *jobs_path; /* for complaints; may be NULL */
    struct bhi_replacement *replacements; /* owned */
    size_t replacement_count, replacement_capacity;
};

/* Writes where a line is: "jobs.jsonl:7", or "line 7" (|jobs_path| may be NULL). Returns |out|. */
enum { BHI_PLACE = 336 };
const char *bhi_admission_place(const char *jobs_path, size_t line, char out[BHI_PLACE]);

/* Gives nodes that had failed and run again the lines of |specs|, where these differ. Returns false
 * if a line differs that may not; the complaint says what can be done. Whatever it returns, call
 * bhi_admission_keep or bhi_admission_undo next. */
bool bhi_admission_replace(struct bhi_admission *admission, const struct bhi_job_spec *specs,
                           size_t count, enum bhi_queue_result *out_result,
                           struct bhi_complaint *complaint);
/* Keeps the new lines. */
void bhi_admission_keep(struct bhi_admission *admission);

/* Appends the jobs of |specs|, with links, ranks and paths. Returns false if nothing was appended;
 * the complaint names file and line, and |out_result| says whose fault it is. The jobs are not
 * admitted: call bhi_graph_admit or bhi_admission_undo next. */
bool bhi_admission_append(const struct bhi_admission *admission, const struct bhi_job_spec *specs,
                          size_t count, enum bhi_queue_result *out_result,
                          struct bhi_complaint *complaint);
/* Removes the appended jobs, and restores the old lines. */
void bhi_admission_undo(struct bhi_admission *admission);

#endif
