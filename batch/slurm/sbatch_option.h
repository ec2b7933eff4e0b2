/* Options that users give to sbatch. */
#ifndef BHI_BATCH_SLURM_SBATCH_OPTION_H
#define BHI_BATCH_SLURM_SBATCH_OPTION_H

#include <stdbool.h>

#include "formats/complaint.h"

/* Is |option|, one word, an option that may be passed to sbatch? Those by which the tasks are found
 * again are refused, in every form in which sbatch reads them; so is one whose value is missing. */
bool bhi_slurm_check_option(const char *option, struct bhi_complaint *complaint);

/* Stands between such an option and ours: one that this version does not know may take the next
 * word as its value. It has no effect. NULL: nothing need stand there. */
const char *bhi_slurm_option_fence(const char *option);

#endif
