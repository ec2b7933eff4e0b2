/* The jobs of `bulkhead batch`: reads and checks the file, and reports each bad line. */
#ifndef BHI_CLI_BATCH_JOBS_H
#define BHI_CLI_BATCH_JOBS_H

#include "batch/graph/names.h"
#include "batch/job/job.h"
#include "batch/queue/queue.h"
#include "batch/report/report.h"

/* An error in a line, until all are printed. */
struct bhi_batch_fault {
    size_t line, order;
    size_t more, last; /* how many other lines have the same cause; the last of them, or |line| */
    bool follows;      /* it follows from the error of another line */
    char *text;        /* owned */
};

struct bhi_batch_jobs {
    const char *path;           /* as given */
    const char *name;           /* for messages: the name for "-", or the path */
    struct bhi_job_spec *specs; /* owned, each one too */
    size_t count, capacity;
    bool no_memory;
    bool roots_only;    /* check files only of jobs without dependencies: lines are bad, so it is
                      * unknown what writes the other inputs */
    const char *device; /* of jobs that name none; NULL: the default; borrowed */
    bool contents;      /* also check the content of kernels and inputs */
    bool makes;         /* the missing folders of outputs will be made */
    size_t bad;         /* lines that were refused */
    struct bhi_batch_fault *faults; /* owned; those that are not printed yet */
    size_t fault_count, fault_capacity;
    struct bhi_names causes;     /* of |faults|, by order */
    struct bhi_report_bad *bads; /* owned, with their texts */
    size_t bads_count, bads_capacity;
    struct bhi_names bad_ids; /* of |bads|, by index; a newline begins one without an id */
    struct bhi_names made;    /* inputs that jobs write, as whole paths; after _check */
    size_t not_json;          /* lines that are not JSON; only the first few are listed */
    bool told_not_json;       /* their number was printed */
    size_t bad_line;          /* the last bad line; with several errors it counts once */
};

/* Reads all lines. Returns an exit status, which is 0 even if lines are bad. Errors in lines, here
 * and below, are printed by bhi_batch_jobs_tell. */
int bhi_batch_jobs_read(struct bhi_batch_jobs *jobs, const char *path);
/* Checks the files of jobs that |queue| (NULL: none yet) has not ended for good. Notes and drops a
 * job whose files are missing, or that would replace the batch's own files (|state| is its
 * folder). Returns an exit status, as above. */
int bhi_batch_jobs_check(struct bhi_batch_jobs *jobs, struct bhi_queue *queue, const char *folder,
                         const char *state);
/* Drops jobs that depend on a job that is neither here nor in |queue|. Returns an exit status, as
 * above. */
int bhi_batch_jobs_drop_orphans(struct bhi_batch_jobs *jobs, struct bhi_queue *queue);
/* Drops bad lines from the report if their job is in |queue| already: the queue reports that job.
 * Returns an exit status, as above. */
int bhi_batch_jobs_drop_known(struct bhi_batch_jobs *jobs, struct bhi_queue *queue);
/* Prints the errors in the order of the lines. If there are too many, those that follow from others
 * are left out first, and their number is printed. Puts
 * |bads| into that order; after it, drop no more orphans. */
void bhi_batch_jobs_tell(struct bhi_batch_jobs *jobs);
void bhi_batch_jobs_free(struct bhi_batch_jobs *jobs);

#endif
