/* What follows from the end of a shard's task. A pure function: no clock, no files.
 *
 *   Slurm says           the task says       then
 *   any                  0, 1                the shard has ended
 *   any                  2                   stuck: its batch was refused
 *   pending, running     -                   wait
 *   COMPLETED, FAILED    nothing yet         wait until files have had time to appear, then again
 *   COMPLETED, FAILED    3, a signal         again
 *   NODE_FAIL, PREEMPTED, BOOT_FAIL, gone    again
 *   TIMEOUT, OUT_OF_MEMORY                   again if a job ended in it; otherwise stuck: the jobs
 *                                            that it was running need more than a task has
 *   CANCELLED, DEADLINE                      stuck
 *
 * "Again" without a job that ended in between is delayed more each time, and stuck in the end.
 * A node that Slurm has lost may go on running its task: then the next one finds the shard's folder
 * in use, and is tried again until it is free.
 * A stuck shard is submitted again by --resume. */
#ifndef BHI_BATCH_SLURM_DECIDE_H
#define BHI_BATCH_SLURM_DECIDE_H

#include "batch/slurm/shard.h"

enum { BHI_SLURM_SHARD_FRUITLESS = 6 };
#define BHI_SLURM_SHARD_CANCELLED "it was cancelled (--cancel)"

struct bhi_slurm_shard_observation {
    enum bhi_slurm_state state;
    const char *name, *node;                     /* of the state and of the machine; may be "" */
    const struct bhi_slurm_shard_ending *ending; /* of this task; NULL: it has said nothing */
    bool settled;        /* enough time has passed for its files to appear */
    bool progressed;     /* a job has ended since it was submitted */
    uint32_t fruitless;  /* tasks before it in which none has */
    bool cancelled;      /* somebody has asked for the end (bulkhead batch --cancel) */
    bool busy;           /* another task of the shard still runs somewhere */
    const char *cut_off; /* the jobs that it was running */
};

enum bhi_slurm_shard_action {
    BHI_SLURM_SHARD_WAITS,
    BHI_SLURM_SHARD_ENDED,
    BHI_SLURM_SHARD_AGAIN,
    BHI_SLURM_SHARD_STUCK
};

struct bhi_slurm_shard_decision {
    enum bhi_slurm_shard_action action;
    uint64_t delay_ns; /* AGAIN: not before that */
    int status;        /* ENDED: 0 or 1 */
    bool cancelled;    /* STUCK: somebody has asked for the end */
    char why[300];     /* AGAIN, STUCK: what happened, for people */
};

/* Is this how a task of a cancelled batch ends? */
bool bhi_slurm_shard_looks_cancelled(const struct bhi_slurm_shard_observation *observation);
void bhi_slurm_shard_decide(const struct bhi_slurm_shard_observation *observation,
                            struct bhi_slurm_shard_decision *out_decision);

#endif
