/* The reference: computes what is expected. It is a kernel or an expression with a worker of its own,
 * files, or a callback of the program. */
#ifndef BHI_JUDGE_CHECK_REFERENCE_H
#define BHI_JUDGE_CHECK_REFERENCE_H

#include "judge/check/launch.h"

/* Fills in the expected outputs of all trials. Fails if the reference does not run, or does not
 * compute the same twice, or computes a NaN that the task does not allow: then no candidate can be
 * judged. */
bool bhi_reference_run(struct bhi_court *court, struct bhi_judge_outcome *outcome);

/* One that computes what is expected of other trials. */
struct bhi_reference {
    struct bhi_court *court;
    bh_stream *stream;                   /* owned; NULL: not open */
    struct bhi_judged_kernel kernel;     /* of a kernel; owned */
    struct bhi_reference_template cache; /* of an expression; owned */
    struct bhi_rack rack;                /* of its runs; owned */
};

/* After a failure nothing is owned. */
bool bhi_reference_open(struct bhi_court *court, struct bhi_reference *out,
                        struct bhi_judge_outcome *outcome);
/* Computes what is expected of a trial, once. After a failure *out holds nothing. */
bool bhi_reference_compute(struct bhi_reference *reference, const struct bhi_trial *trial,
                           struct bhi_launched *out, struct bhi_judge_outcome *outcome);
/* What a reference has left becomes what is expected: *launched holds nothing then. */
void bhi_launched_expect(const struct bhi_task *task, struct bhi_launched *launched,
                         struct bhi_trial *trial);
/* Takes {0}, too. */
void bhi_reference_close(struct bhi_reference *reference);

#endif
