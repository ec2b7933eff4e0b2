/* What launches a CUDA kernel right: its entry point, its block, and what each of its parameters is. The module says
 * only how many bytes they have, PTX also of which kind they are; the task says the rest. */
#ifndef BHI_JUDGE_CHECK_CUDA_H
#define BHI_JUDGE_CHECK_CUDA_H

#include "judge/check/kernel.h"
#include "judge/check/ptx.h"

/* Does the device of the court run the file? |plan|: what is said of it; NULL: nothing. */
bool bhi_cuda_check_device(const struct bhi_court *court, const struct bhi_judge_plan_kernel *plan,
                           const struct bhi_kernel_file *file, struct bhi_judge_outcome *outcome);
/* The entry point of |file|, which is for CUDA: as given, or the only one of PTX, which |room| keeps. NULL: the compiler
 * finds it. */
bool bhi_cuda_entry(const struct bhi_kernel_file *file, char room[BHI_PTX_NAME], const char **out,
                    struct bhi_judge_outcome *outcome);
/* Fills in the types of step |number|, whose kernel is made of |file|: its arrays by the task's names, and its numbers
 * as push constants, with the block as the size of the workgroup. May start a worker, and blocks then. */
bool bhi_cuda_types(const struct bhi_court *court, struct bhi_judged_kernel *kernel, size_t number,
                    const struct bhi_kernel_file *file, struct bhi_judge_outcome *outcome);

#endif
