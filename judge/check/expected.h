/* What is expected of a trial when a run is to be compared with it: if it was forgotten
 * (bhi_trials_forget), the reference computes it again. */
#ifndef BHI_JUDGE_CHECK_EXPECTED_H
#define BHI_JUDGE_CHECK_EXPECTED_H

#include "judge/check/outcome.h"
#include "judge/check/trial.h"

/* A trial of which everything that is expected is known. */
struct bhi_recalled {
    struct bhi_trial trial;
    bool made; /* what is expected is owned, by a copy of the trial's arrays */
};

/* Gives what is expected of a trial; runs the reference if it is forgotten, and blocks then. Any
 * thread. After a failure, of which no candidate is the cause, *out holds nothing. */
bool bhi_expected_recall(struct bhi_court *court, const struct bhi_trial *trial,
                         struct bhi_recalled *out, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_recalled_free(const struct bhi_task *task, struct bhi_recalled *recalled);
/* Ends the reference that has run again. */
void bhi_expected_close(struct bhi_court *court);

#endif
