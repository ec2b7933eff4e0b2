/* Whether times are steady enough to be compared. */
#ifndef BHI_JUDGE_DATA_STEADY_H
#define BHI_JUDGE_DATA_STEADY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_steadiness {
    size_t count; /* of what differs by itself: groups, or times if there is one group */
    double median;
    double noise; /* standard error of the median, over the median */
    double drift; /* from the median of the first half of the times to that of the second, over the
                     median; 0 of fewer than four times */
};

/* Looks at |count| times, at least one, in the order in which they were taken, in |groups|
 * (group.h) of runs that had the same worker. The noise is derived from the median of the
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
