/* Whether a candidate is SLOWER than was asked for: by the times of this run, or by those that an
 * earlier one has recorded. */
#ifndef BHI_JUDGE_TIME_SLOWER_H
#define BHI_JUDGE_TIME_SLOWER_H

#include "judge/check/candidate.h"
#include "judge/time/options.h"

/* The trial of a size that is timed; NULL: it is not. */
const struct bhi_trial *bhi_timed_trial(const struct bhi_court *court, size_t size);

/* Makes a candidate that is CORRECT SLOWER, if |timing|, one of its own, says so. */
void bhi_slower_judge(const struct bhi_court *court, const struct bhi_timing_options *options,
                      const bh_judge_timing *timing, bh_judgement *out);
/* The same by all times of the candidate, which an earlier run has measured, maybe with other
 * options. Returns false if they do not suffice and it has to be measured: a size is missing that
 * could change the verdict, a ratio is not known, or the options ask for something else (other
 * caches, the guard's cost). */
bool bhi_slower_judge_known(const struct bhi_court *court, const struct bhi_timing_options *options,
                            bh_judgement *out);

#endif
