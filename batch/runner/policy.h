/* What follows an attempt: a pure function, so that a test can try every verdict. */
/* clang-format off */
/*   class of the verdict       what follows
 *   OK                         DONE
 *   guilty, by itself          counted; tried again until it was guilty more than |retries| times,
 *                              then QUARANTINED; LOOP_LIMIT at once: the loop stays as long
 *   suspected alone (blame):   tried again without blame, on a worker that has run nothing else;
 *   guilty or input, by itself after BHI_POLICY_VICTIM times FAILED. If that worker had run nothing
 *                              else (a GPU's driver ended a long kernel): as guilty or input, since
 *                              the next attempt would be the same
 *   victim, or reached by      tried again without blame; after BHI_POLICY_VICTIM times FAILED, so
 *   poison                     that every job ends
 *   input, caller              FAILED: the same would happen again
 *   environ                    tried again after a pause that doubles. If the machine has no device
 *                              at all, the batch ends; if only the device that the job names is
 *                              missing: FAILED
 *   out of memory or           tried again when others have given theirs back. If it was alone:
 *   descriptors                memory FAILED, descriptors as environ. If no job has ended well yet,
 *                              and workers have had the time to start, this process has too few
 *                              descriptors (EMFILE), and the batch ends
 */
/* clang-format on */
#ifndef BHI_BATCH_RUNNER_POLICY_H
#define BHI_BATCH_RUNNER_POLICY_H

#include "batch/job/job.h"

enum { BHI_POLICY_VICTIM = 100 };

struct bhi_policy_case {
    const bh_verdict *verdict;
    uint32_t retries, guilty, victim; /* of the job, without this attempt */
    uint32_t refusals;     /* attempts in a row that the environment refused, without this one */
    bool refused_long;     /* the refusals have lasted longer than workers need to start; a starting
                            * worker holds a few extra descriptors */
    bool batch_has_served; /* a job of the batch has ended well, so there was room for one */
    bool nothing_else_held; /* no other job of the batch had memory or descriptors */
    bool tried_alone;       /* the attempt was on a worker that had run nothing else */
    bool names_device;      /* the job names a device; other jobs may use others */
    bool stopping;          /* the batch ends early: cancelled or closed events are our doing */
    bool interrupted;       /* because of a signal */
};

struct bhi_policy_answer {
    enum bhi_job_state next;
    bool guilty;             /* it counts against the job's retries */
    bool unproven;           /* another job may be the cause: the next attempt will show */
    bool environment_failed; /* the cause is the machine, not the job */
    bool refused_for_good;   /* no other job would do better: the batch ends, and this job waits */
    bool waits_for_others;   /* not before another job gives back what it holds */
    uint64_t delay_ns;
};

struct bhi_policy_answer bhi_policy(const struct bhi_policy_case *given);

#endif
