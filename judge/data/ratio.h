/* How much faster one kernel is than another: the ratio of two medians, and how certain it is. */
#ifndef BHI_JUDGE_DATA_RATIO_H
#define BHI_JUDGE_DATA_RATIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_ratio {
    double ratio;     /* median of the first over the median of the second */
    double low, high; /* the ratio is between them with 95 % */
};

/* The median; of an even number, the mean of the middle two. Sorts |times|, at least one. */
double bhi_median_of(uint64_t *times, size_t count);

/* Compares |count| times each, of runs that took turns: a[i] beside b[i]. Resamples the pairs, so
 * that load that both met cancels out, in blocks of neighbours, so that load that lasts for several
 * turns does not look like as many independent ones (block.h). |seed| decides the resamples: the
 * same input gives the same interval. Returns false if memory ran out, or a median is 0. */
bool bhi_ratio_of(const uint64_t *a, const uint64_t *b, size_t count, uint64_t seed,
                  struct bhi_ratio *out);

#endif
