/* Calls of Slurm: sbatch, squeue, sacct, scancel. */
#ifndef BHI_BATCH_SLURM_CLIENT_H
#define BHI_BATCH_SLURM_CLIENT_H

#include "batch/slurm/array.h"
#include "batch/slurm/parse.h"

struct bhi_slurm_client {
    uint64_t patience_ns; /* how long it is tried again while the controller is not reached */
    int lock; /* kept open in sbatch: a submission outlives a killed submitter; -1: none */
    void (*waits)(void *user, const char *why); /* called before each pause; may be NULL */
    void *user;
};

/* Are there sbatch, squeue and scancel of a version that this program can use? Otherwise the
 * complaint says what is wrong. */
bool bhi_slurm_check(struct bhi_complaint *complaint);

/* How many tasks the controller takes in one array; UINT64_MAX: it does not say. */
uint64_t bhi_slurm_most_tasks(void);

enum bhi_slurm_result {
    BHI_SLURM_DONE,
    BHI_SLURM_BAD,         /* the controller refuses it; the complaint has its message */
    BHI_SLURM_DOWN,        /* it was not reached within the client's patience */
    BHI_SLURM_INTERRUPTED, /* a signal asked for the end (interrupt.h); nothing was submitted */
    BHI_SLURM_CUT_OFF      /* likewise, but Slurm may have what was being submitted */
};

/* How long a squeue that fails for good is asked again where there is nothing else to wait for: it
 * may be in the middle of an update. */
#define BHI_SLURM_BAD_NS UINT64_C(5000000000)
/* *bad_ns: since when squeue has failed for good each time; 0: it does not. Returns whether that
 * has lasted for |patience_ns|. */
bool bhi_slurm_is_bad(enum bhi_slurm_result result, uint64_t patience_ns, uint64_t *bad_ns);

/* Submits |script| with |options| (NULL after the last) and |comment|, once: after an answer that
 * did not come, the controller is asked whether it has a job with that comment, again after some
 * seconds, and only then is it submitted again. |asks_first|: ask even before the first try.
 * |words| (may be NULL) are passed to the script. */
struct bhi_slurm_submission {
    const char *comment, *script;
    const char *const *options, *const *words;
    bool asks_first;
};
enum bhi_slurm_result bhi_slurm_submit(const struct bhi_slurm_client *client,
                                       const struct bhi_slurm_submission *submission,
                                       uint64_t *out_job, struct bhi_complaint *complaint);

/* Asks once, with one squeue, for all jobs of this user, and calls |visit| for each task whose
 * comment begins with |prefix|. Returns BHI_SLURM_DOWN, with a complaint, if squeue fails,
 * BHI_SLURM_BAD if it will fail again, and BHI_SLURM_INTERRUPTED if a signal came meanwhile. */
enum bhi_slurm_result bhi_slurm_tasks(const char *prefix,
                                      void (*visit)(void *user, const struct bhi_slurm_task *task),
                                      void *user, struct bhi_complaint *complaint);
/* The state of a task that squeue does not list any more, if the site keeps accounts; otherwise
 * BHI_SLURM_GONE. |out_name| is Slurm's word for it. */
enum bhi_slurm_state bhi_slurm_account(uint64_t array, uint32_t index, char out_name[32]);
/* The option of sbatch for the output file |path|, in which % is no pattern, then |pattern|. The
 * caller owns it; NULL if memory ran out. */
char *bhi_slurm_output(const char *path, const char *pattern);
/* Cancels a job or an array. One that has ended already is no failure. */
bool bhi_slurm_cancel(uint64_t job, struct bhi_complaint *complaint);
/* Cancels what Slurm has of the batch |id|, waiting or running. It is found by its comments, not by
 * recorded job ids: a new controller gives those to others. *out_tasks: how many that were. */
bool bhi_slurm_cancel_all(const char *id, uint32_t *out_tasks, struct bhi_complaint *complaint);
/* Likewise only the jobs whose comment begins with |prefix|. */
bool bhi_slurm_cancel_comment(const char *prefix, uint32_t *out_tasks,
                              struct bhi_complaint *complaint);

/* May Slurm have a task of the batch |id| that waits, or that runs and has not said its end in the
 * state folder? */
bool bhi_slurm_may_have(const char *id, const char *state);

#endif
