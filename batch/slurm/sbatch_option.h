/* Options that users give to sbatch. */
#ifndef BHI_BATCH_SLURM_SBATCH_OPTION_H
#define BHI_BATCH_SLURM_SBATCH_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

/* Is |option|, one word, an option that may be passed to sbatch? Those by which the tasks are found
 * again are refused, in every form in which sbatch reads them; so is one whose value is missing. */
bool bhi_slurm_check_option(const char *option, struct bhi_complaint *complaint);

/* Puts |given| (NULL after the last) into |out|, with a word without effect behind each option of
 * one word: one that this version does not know may take the next word as its value. Returns how
 * many words that are, at most twice as many as were given. |out| borrows them. */
size_t bhi_slurm_put_options(char *const *given, const char **out);

#endif
