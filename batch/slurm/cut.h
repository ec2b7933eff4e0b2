/* Cuts the jobs of a batch into shards. Jobs that depend on each other, directly or through others,
 * are in the same shard, so shards need not wait for each other. */
#ifndef BHI_BATCH_SLURM_CUT_H
#define BHI_BATCH_SLURM_CUT_H

#include "batch/job/job.h"

struct bhi_cut {
    uint32_t *shard; /* of each job, by index; owned */
    uint64_t *sizes; /* jobs in each shard, none of them 0; owned */
    uint32_t shards; /* at most as many as were asked for */
};

/* Cuts |specs| into at most |most| shards of sizes that differ as little as whole groups allow: the
 * largest group first, each into the smallest shard. The same ids, dependencies and |most| give the
 * same cut. Dependencies that are no jobs are ignored. Returns false if memory ran out. */
bool bhi_cut_make(const struct bhi_job_spec *specs, size_t count, uint32_t most,
                  struct bhi_cut *out_cut);
void bhi_cut_free(struct bhi_cut *cut);

#endif
