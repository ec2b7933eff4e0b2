/* The plots of a judging's page. */
#ifndef BHI_JUDGE_REPORT_PLOTS_H
#define BHI_JUDGE_REPORT_PLOTS_H

#include "judge/report/report.h"
#include "tool/report/page.h"

/* Time against size, of the reference and of the fastest candidates. |ranked| is as bhi_judge_rank
 * fills it in. */
void bhi_judge_plot_times(struct bhi_page *page, const struct bhi_judge_report *report,
                          const struct bhi_candidate *const *ranked);
/* What they move or compute in a second, in a section of its own: with the task's "bytes" and
 * "operations" a roofline, with one of them the rate against size, with none nothing. */
void bhi_judge_plot_rates(struct bhi_page *page, const struct bhi_judge_report *report,
                          const struct bhi_candidate *const *ranked);

#endif
