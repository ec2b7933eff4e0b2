/* Inputs that generators hardly ever make: sorted, all equal, tiny. Kernels that are wrong there pass on
 * random numbers. */
#ifndef BHI_JUDGE_DATA_ARRANGE_H
#define BHI_JUDGE_DATA_ARRANGE_H

#include <stdbool.h>

#include "judge/data/filler.h"

enum bhi_arrangement {
    BHI_ARRANGE_NONE, /* as the generator makes it */
    /* Of numbers that the generator makes: */
    BHI_ARRANGE_EQUAL,
    BHI_ARRANGE_SORTED,
    BHI_ARRANGE_REVERSED,
    BHI_ARRANGE_TIES, /* four numbers, each many times */
    BHI_ARRANGE_ENDS, /* the least and the greatest; of NORMAL four deviations from the mean */
    /* Whatever the generator makes: */
    BHI_ARRANGE_ZEROS, /* of both signs */
    BHI_ARRANGE_TINY,  /* denormal numbers and the smallest normal ones; of integers 1 and -1 */
    BHI_ARRANGE_HUGE,  /* the largest numbers and their halves */
    BHI_ARRANGE_PERMUTATION, /* the whole numbers from 0 on, each once, as far as the type goes */
    BHI_ARRANGEMENTS,
};

/* Their names; that of NONE is NULL. */
extern const char *const bhi_arrangement_names[BHI_ARRANGEMENTS];

/* Fills |count| elements of |dtype|, as bhi_filler_fill does. Not for BHI_FILLER_FILE. */
void bhi_arrange(enum bhi_arrangement arrangement, const struct bhi_filler *filler,
                 struct bhi_filler_place place, bh_dtype dtype, uint64_t count, void *out);

#endif
