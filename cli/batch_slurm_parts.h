/* What the files of `bulkhead batch --executor slurm` share. */
#ifndef BHI_CLI_BATCH_SLURM_PARTS_H
#define BHI_CLI_BATCH_SLURM_PARTS_H

#include "batch/journal/state_folder.h"
#include "batch/shards/report.h"
#include "batch/shards/shards.h"
#include "batch/slurm/cut.h"
#include "batch/slurm/places.h"
#include "batch/slurm/watch.h"
#include "cli/batch_jobs.h"

struct bhi_args;
struct bhi_batch_slurm;

struct bhi_slurm_batch {
    const struct bhi_batch_slurm *options;
    const struct bhi_args *args;
    bool resume, keep_going, retry_failed, has_array, was_cancelled;
    bool continues;          /* --resume goes on: the command is said at the end */
    const char *given_state; /* as it was given, for messages */
    struct bhi_state_folder folder;
    int lock;
    struct bhi_batch_jobs jobs;
    struct bhi_cut cut;
    struct bhi_slurm_array array;
    char jobs_hash[65], shape_hash[65];
    bool *redo; /* owned; for each shard whether it has ended and goes on (--redo-changed) */
    uint64_t began_ns, shown_ns;
    struct bhi_watch watch;
    struct bhi_shards shards; /* what is read of them while they run, and for the report */
    bool no_follow;           /* that failed */
};

/* Opens the state folder, or makes it, and locks it. Returns an exit status. */
int bhi_batch_slurm_open_folder(struct bhi_slurm_batch *batch);
/* Reads array.json of the open folder. */
bool bhi_batch_slurm_load_array(struct bhi_slurm_batch *batch, struct bhi_complaint *complaint);
/* The path of this program, which tasks start; the caller owns it. NULL: another program or none is
 * there now, because a new version was installed. */
char *bhi_batch_slurm_own_program(struct bhi_complaint *complaint);
/* Refuses texts that cannot be recorded, and folders that Slurm does not take. Returns an exit
 * status. */
int bhi_batch_slurm_check_texts(const struct bhi_slurm_batch *batch, const char *cwd);
/* A signal asks for the end: cancels what is submitted, if that is wanted, and says what goes on.
 * Returns an exit status. */
int bhi_batch_slurm_end_interrupted(struct bhi_slurm_batch *batch);
/* Has the submitter ended that wrote |holder| into the lock? Known only on its own machine. */
bool bhi_batch_slurm_holder_is_gone(const char *holder);
/* Writes each shard's jobs. |places| (may be NULL) has what is staged. */
bool bhi_batch_slurm_write_shards(const struct bhi_slurm_batch *batch,
                                  const struct bhi_places *places, struct bhi_complaint *complaint);
/* Reads and checks the file of jobs, and hashes what is in it. Returns an exit status. */
int bhi_batch_slurm_read_jobs(struct bhi_slurm_batch *batch, const char *cwd);
/* Compares what finished jobs have read in shards that have ended, and sets |redo|. Returns an exit
 * status. */
int bhi_batch_slurm_judge_changes(struct bhi_slurm_batch *batch);
/* Looks, with a probe, for what the jobs need on the cluster, stages what is not there, and sets
 * where tasks start. Returns an exit status. */
int bhi_batch_slurm_probe(struct bhi_slurm_batch *batch, struct bhi_places *places);

/* -- what is said of the jobs, from the shards' feeds ---------------------------------------- */

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
