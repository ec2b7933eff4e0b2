/* How much faster one kernel is than another, and how certain it is. */
#ifndef BHI_JUDGE_DATA_RATIO_H
#define BHI_JUDGE_DATA_RATIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fewer groups than these show no interval of 95 %. */
enum { BHI_RATIO_GROUPS_LEAST = 5, BHI_RATIO_GROUPS_MOST = 50 };

struct bhi_ratio {
    double ratio;     /* of the first to the second */
    double low, high; /* the ratio is between them with 95 % */
};

/* The median; of an even number, the mean of the middle two. Sorts |times|, at least one. */
double bhi_median_of(uint64_t *times, size_t count);

/* Compares |count| times each, of runs that took turns: a[i] beside b[i]. They are in |groups|
 * groups (group.h) of runs that had the same two workers. A worker is fast or slow as long as it
 * lives, so however many runs a group has, it is one observation: the ratio of its medians.
 *
 * The ratio is the Hodges-Lehmann estimate of the groups' (the median of the geometric means of
 * each two of them), and the interval is that of Wilcoxon's signed ranks. It is exact however the
 * ratios are distributed, if a ratio that is too high by a factor is as likely as one that is too
 * low by it. Of five groups it would be one of 94 %, and is made wider.
 *
 * Returns false if memory ran out, a median is 0, or there are fewer or more groups than above. */
bool bhi_ratio_of(const uint64_t *a, const uint64_t *b, size_t count, size_t groups,
                  struct bhi_ratio *out);

#endif
