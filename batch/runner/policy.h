/* What happens to a job after an attempt: a pure function, so that a test can try every verdict. */
/* clang-format off */
/*   class of the verdict         what follows
 *   OK                           DONE
 *   guilty, by itself            counted; tried again until it was guilty more than |retries| times,
 *                                then QUARANTINED; LOOP_LIMIT at once, as the loop stays as long
 *   suspected alone (blame):     tried again without blame, on a worker that has run nothing else;
 *   guilty or input, by itself   after BHI_POLICY_VICTIM times FAILED
 *   victim, or reached by        tried again without blame; after BHI_POLICY_VICTIM times FAILED, so
 *   poison                       that every job ends
 *   input, caller                FAILED: the same would come again
 *   environ                      tried again after a pause that doubles; where the machine has no
 *                                device at all the batch ends; where there is no device that the job
 *                                itself names: FAILED
 *   out of memory or             tried again when others have given theirs back; where it was alone:
 *   descriptors                  of memory FAILED, of descriptors as environ; where no job has ended
 *                                well yet, and workers have had the time to start, this process has
 *                                too few (EMFILE), and the batch ends
 */
/* clang-format on */
#ifndef BHI_BATCH_RUNNER_POLICY_H
#define BHI_BATCH_RUNNER_POLICY_H

#include "batch/job/job.h"

enum { BHI_POLICY_VICTIM = 100 };

struct bhi_policy_case {
    const bh_verdict *verdict;
    uint32_t retries, guilty, victim; /* of the job, before this attempt */
    uint32_t refusals;     /* by the environment, of the batch, in a row, this one not among them */
    bool refused_long;     /* that lasts longer than workers take to start, which hold some more
                              descriptors until they are ready */
    bool batch_has_served; /* a job of the batch has ended well: there is room for one */
    bool nothing_else_held; /* no other job of the batch had memory or descriptors */
    bool names_device;      /* the job names its device: other jobs may have other devices */
    bool stopping;          /* the batch ends early: what was cancelled or closed, was by us */
    bool interrupted;       /* by a signal, that is */
};

struct bhi_policy_answer {
    enum bhi_job_state next;
    bool guilty;             /* counts against its retries */
    bool unproven;           /* it may have been another job's doing: the next attempt is to show */
    bool environment_failed; /* it says something about the machine, nothing about the job */
    bool refused_for_good; /* no other job would fare better: the batch ends, and this one waits */
    bool waits_for_others; /* not before another job has given back what it holds */
    uint64_t delay_ns;
};

struct bhi_policy_answer bhi_policy(const struct bhi_policy_case *given);

#endif
