/* What `bulkhead batch --executor slurm` says of the jobs, from the shards' feeds. */
#ifndef BHI_CLI_BATCH_SLURM_REPORT_H
#define BHI_CLI_BATCH_SLURM_REPORT_H

#include "batch/shards/report.h"

struct bhi_slurm_report {
    const char *state;         /* the folder, as given */
    struct bhi_shards *shards; /* what the progress has read of it; opened if need be */
    struct bhi_shards_report what;
    uint32_t stuck, cancelled; /* shards that are stuck, or were cancelled (--cancel) */
    uint32_t again;            /* tasks that were submitted again */
    const uint64_t *sizes;     /* of each shard, by its number: how many jobs it has */
    uint32_t count;            /* shards */
    /* Found out: the first shard whose records lack jobs that must have ended, and how many of it
     * have. |count|: there is none. */
    uint32_t open;
    uint64_t ended;
};

/* Prints how many jobs have ended, "17 of 40 jobs done, 1 failed, ", on standard error: the
 * beginning of a line. |shards| is opened at the first call, and the caller closes it. */
void bhi_batch_slurm_progress(struct bhi_shards *shards, const char *state);
/* Prints the report over all shards, and whether some are stuck. Returns an exit
 * status; after a signal there is no report. */
int bhi_batch_slurm_report(struct bhi_slurm_report *report);

#endif
