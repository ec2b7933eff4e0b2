/* Runs a candidate once more in the trial that ended its judging, for what it writes there. */
#ifndef BHI_JUDGE_CHECK_REPEAT_H
#define BHI_JUDGE_CHECK_REPEAT_H

#include "judge/check/candidate.h"
#include "judge/check/expected.h"

struct bhi_repeated {
    struct bhi_recalled known;    /* the trial; owned */
    struct bhi_launched launched; /* of a candidate that has FAILED nothing; owned */
};

/* |candidate| has the judgement. Runs as it was judged, at most as often (bhi_trial_runs), and keeps
 * the first run that is wrong. Returns false if the candidate does not run to its end now, or is not
 * what was judged, or the trial is not the court's; then nothing is owned. */
bool bhi_candidate_repeat(struct bhi_court *court, const struct bhi_candidate *candidate,
                          struct bhi_repeated *out, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_repeated_free(const struct bhi_task *task, struct bhi_repeated *repeated);

#endif
