/* The jobs of `bulkhead batch`: reads and checks the file, and reports each bad line. */
#ifndef BHI_CLI_BATCH_JOBS_H
#define BHI_CLI_BATCH_JOBS_H

#include "batch/graph/names.h"
#include "batch/job/job.h"
#include "batch/queue/queue.h"
#include "batch/report/report.h"

struct bhi_batch_jobs {
    const char *path;           /* as given */
    const char *name;           /* for complaints: "-" is called so */
    struct bhi_job_spec *specs; /* owned, each too */
    size_t count, capacity;
    bool no_memory;
    bool roots_only; /* files are looked for of those that depend on nothing: lines are bad, and
                        what would write the others' inputs is not known */
    bool contents;   /* what is in kernels and inputs is looked at, too */
    size_t bad;      /* lines that were refused, and told */
    struct bhi_report_bad *bads; /* owned, and their texts: what is known of each */
    size_t bads_count, bads_capacity;
    struct bhi_names bad_ids; /* of |bads|, by index; what is no id begins with a line end */
    size_t bad_line;          /* the last one of them: a line with several faults counts once */
};

/* Reads all lines. Returns an exit status: 0 also where lines are bad. */
int bhi_batch_jobs_read(struct bhi_batch_jobs *jobs, const char *path);
/* Looks at the files of those jobs that |queue| (NULL: there is none yet) has not at an end for
 * good; those whose files are missing, or that would replace the batch's own (|state| is its
 * folder), are told, and dropped. Returns an exit status, as above. */
int bhi_batch_jobs_check(struct bhi_batch_jobs *jobs, struct bhi_queue *queue, const char *folder,
                         const char *state);
/* Drops those that depend on what is neither there nor in |queue|. As above. */
int bhi_batch_jobs_drop_orphans(struct bhi_batch_jobs *jobs, struct bhi_queue *queue);
/* Of bad lines that are jobs of |queue| from earlier, those tell. As above. */
int bhi_batch_jobs_drop_known(struct bhi_batch_jobs *jobs, struct bhi_queue *queue);
void bhi_batch_jobs_free(struct bhi_batch_jobs *jobs);

#endif
