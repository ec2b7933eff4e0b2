/* The reference: computes what is expected in each trial. */
#ifndef BHI_JUDGE_CHECK_REFERENCE_H
#define BHI_JUDGE_CHECK_REFERENCE_H

#include "judge/check/outcome.h"
#include "judge/check/trial.h"

/* Fills in the expected outputs of all trials. Fails if the reference does not run, or does not
 * compute the same twice, or computes a NaN that the task does not allow: then no candidate can be
 * judged. */
bool bhi_reference_run(struct bhi_court *court, struct bhi_judge_outcome *outcome);

#endif
