/* Judges one candidate: a kernel that nobody trusts. */
#ifndef BHI_JUDGE_CHECK_CANDIDATE_H
#define BHI_JUDGE_CHECK_CANDIDATE_H

#include <bulkhead/judge.h>

#include "judge/check/setup.h"
#include "judge/check/trial.h"
#include "request/kernel_file.h"

struct bhi_candidate {
    struct bhi_kernel_file file; /* with its code in memory, or to be read at |path|; borrowed */
    bool judged;                 /* |judgement| holds: only the candidate can be the cause */
    bh_judgement judgement;
};

/* What a candidate runs on, for each order of workgroups: another kernel would end a worker. */
struct bhi_candidate_workers {
    bh_stream *streams[2]; /* owned; NULL: not needed so far */
    bool shared;           /* the first is for both: it isolates no kernel */
    struct bhi_rack racks[2];
};

/* Makes the kernel in |file| as candidates are made: nobody trusts it. */
bool bhi_candidate_make(struct bhi_court *court, const struct bhi_kernel_file *file,
                        struct bhi_judged_kernel *out, struct bhi_judge_outcome *outcome);
/* Runs a trial for time |turn|, from 0 on, and tells what that was: the second time without noise, and every
 * second time with workgroups in the opposite order. After a failure *out holds nothing. */
bool bhi_candidate_launch(struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                          struct bhi_candidate_workers *workers, const struct bhi_trial *trial,
                          unsigned turn, struct bhi_program *program, struct bhi_launched *out,
                          struct bhi_judge_outcome *outcome);
void bhi_candidate_workers_close(struct bhi_candidate_workers *workers);
/* Runs the kernel in |file| through all trials, once. Returns false if the machine failed or a
 * signal came: then nothing is known about the kernel, and |outcome| says why. */
bool bhi_candidate_try(struct bhi_court *court, struct bhi_candidate *candidate,
                       struct bhi_judge_outcome *outcome);
/* The same while nothing else runs: tries it again where its worker may have ended because of
 * something else. |candidate| is judged then. */
bool bhi_candidate_judge(struct bhi_court *court, struct bhi_candidate *candidate,
                         struct bhi_judge_outcome *outcome);
/* Compares what a run left with what is expected of |trial|. If it is wrong, fills in |out|,
 * located at |named|, and returns false; also if the program's check failed (|outcome->called|). */
bool bhi_candidate_check(const struct bhi_court *court, const struct bhi_trial *trial,
                         const struct bhi_trial *named, const struct bhi_launched *launched,
                         bh_judgement *out, struct bhi_judge_outcome *outcome);
/* Ends a judging with |verdict|, by a run of |trial|; NULL: by none. The message is the caller's. */
void bhi_judgement_end(const struct bhi_task *task, const struct bhi_trial *trial,
                       bh_judge_verdict verdict, bh_judgement *out);
/* The same of a candidate that has failed. */
void bhi_judgement_fail(const struct bhi_task *task, const struct bhi_trial *trial,
                        const struct bhi_judge_outcome *outcome, bh_judgement *out);
/* The trial of the run that ended it; NULL: none did, or none of this court. */
const struct bhi_trial *bhi_judgement_trial(const struct bhi_court *court, const bh_judgement *of);
/* The array that its output is; the first one if it has none. */
uint32_t bhi_judgement_array(const struct bhi_task *task, const bh_judgement *of);

#endif
