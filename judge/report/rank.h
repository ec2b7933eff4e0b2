/* The order of a leaderboard. */
#ifndef BHI_JUDGE_REPORT_RANK_H
#define BHI_JUDGE_REPORT_RANK_H

#include "judge/report/report.h"

/* How long it takes, relative to the reference: the geometric mean of the ratios of all sizes; 0 if
 * none was measured. */
double bhi_judge_ratio(const struct bhi_candidate *candidate);
/* Fills |out|, of report->count pointers: those that are CORRECT, the fastest first, then those
 * that have no time; then the others. What is equal stays in the order in which it was given. */
void bhi_judge_rank(const struct bhi_judge_report *report, const struct bhi_candidate **out);

#endif
