/* Compares an output with the expected one as a whole: in any order, or by a norm. */
#ifndef BHI_JUDGE_DATA_WHOLE_H
#define BHI_JUDGE_DATA_WHOLE_H

#include "judge/data/compare.h"

/* Sorts elements for a comparison in any order: -0 before 0, NaNs last and alike. */
void bhi_sort_multiset(bh_dtype dtype, uint64_t count, void *elements);

/* Compares as the tolerance says. By multiset, both are sorted (bhi_sort_multiset): |wrong| counts the elements
 * that have no partner, |got| and |expected| are the least ones on either side, and |index| is that of the
 * former. By norm, all are wrong or none, and |index| is where they are farthest from each other; of an
 * infinity or a NaN that is expected only the same is right, whatever the norm. */
void bhi_compare_whole(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                       const struct bhi_tolerance *tolerance, struct bhi_difference *out);

#endif
