/* A case: a trial as a callback of the program gets it (include/bulkhead/judge_case.h). */
#ifndef BHI_JUDGE_CHECK_CASE_H
#define BHI_JUDGE_CHECK_CASE_H

#include "judge/check/setup.h"

/* Has the program's reference compute what is expected of the trial. After a failure *out holds
 * nothing. */
bool bhi_case_refer(const struct bhi_court *court, const struct bhi_trial *trial,
                    struct bhi_launched *out, struct bhi_judge_outcome *outcome);

/* Has the program's check look at what a run left; *message is empty if it is right, or if the task has no
 * output for a check. Returns false with |outcome->called| if the check failed, or memory ran out. */
bool bhi_case_check(const struct bhi_court *court, const struct bhi_trial *trial,
                    const struct bhi_launched *launched, char message[BH_JUDGE_MESSAGE],
                    struct bhi_judge_outcome *outcome);

#endif
