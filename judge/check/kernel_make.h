/* Makes what is run for a task of a candidate's file, or a reference's. */
#ifndef BHI_JUDGE_CHECK_KERNEL_MAKE_H
#define BHI_JUDGE_CHECK_KERNEL_MAKE_H

#include "judge/check/kernel.h"

/* Makes the kernels; reads the file unless |file| has the code. |trusted|: without the guard. |noise|:
 * an odd number (bh_kernel_options.noise): they have opposites, too; 0: neither.
 * Blocks; only the end of the context ends it early. After a failure nothing is owned. */
bool bhi_judged_kernel_make(const struct bhi_court *court, const struct bhi_kernel_file *file,
                            bool trusted, uint32_t noise, struct bhi_judged_kernel *out,
                            struct bhi_judge_outcome *outcome);

#endif
