/* How much faster one kernel is than another, and how certain it is. */
#ifndef BHI_JUDGE_DATA_RATIO_H
#define BHI_JUDGE_DATA_RATIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs in groups. The runs of a group have the same workers; the next group has fresh ones. */

/* The first of |count| runs that is in |group|, or in a later one. All groups have as many runs, or
 * one more than others. */
static inline size_t bhi_group_begin(size_t count, size_t groups, size_t group) {
    return (size_t)((unsigned __int128)count * group / groups);
}

/* Fewer groups than these show no interval of 95 %. */
enum { BHI_RATIO_GROUPS_LEAST = 5, BHI_RATIO_GROUPS_MOST = 50 };

struct bhi_ratio {
    double ratio;     /* of the first to the second */
    double low, high; /* the ratio is between them with 95 % */
};

/* The median; of an even number, the mean of the middle two. Sorts |times|, at least one. */
double bhi_median_of(uint64_t *times, size_t count);

/* Compares |count| times each, of runs that took turns: a[i] beside b[i]. They are in |groups|
 * groups of runs that had the same two workers. A worker is fast or slow as long as it lives,
 * so however many runs a group has, it is one observation: the ratio of its medians.
 *
 * The ratio is the Hodges-Lehmann estimate of the groups' (the median of the geometric means of
 * each two of them), and the interval is that of Wilcoxon's signed ranks. It is exact however the
 * ratios are distributed, if a ratio that is too high by a factor is as likely as one that is too
 * low by it. Of five groups it would be one of 94 %, and is made wider.
 *
 * Returns false if memory ran out, a median is 0, or there are fewer or more groups than above. */
bool bhi_ratio_of(const uint64_t *a, const uint64_t *b, size_t count, size_t groups,
                  struct bhi_ratio *out);

/* Whether times are steady enough to be compared. */

struct bhi_steadiness {
    size_t count; /* of what differs by itself: groups, or times if there is one group */
    double median;
    double noise; /* standard error of the median, over the median */
    double drift; /* from the median of the first half of the times to that of the second, over the
                     median; 0 of fewer than four times */
};

/* Looks at |count| times, at least one, in the order in which they were taken, in |groups|
 * of runs that had the same worker. The noise is derived from the median of the
 * deviations, so single times that are far out do not count; where it is more, from how much the
 * groups differ. Returns false if memory ran out. */
bool bhi_steadiness_of(const uint64_t *times, size_t count, size_t groups,
                       struct bhi_steadiness *out);
/* Is the drift larger than |limit|, and than what the noise explains? */
bool bhi_steadiness_drifts(const struct bhi_steadiness *steadiness, double limit);
/* Is it slower than before, by more than |limit| of what it was, and than both noises explain? */
bool bhi_steadiness_is_slower(const struct bhi_steadiness *now, const struct bhi_steadiness *before,
                              double limit);

#endif
