/* What the host sees of batches: many runs that are one submission. */
#ifndef BHI_JUDGE_TIME_BATCH_H
#define BHI_JUDGE_TIME_BATCH_H

#include "judge/time/bound.h"
#include "judge/time/series.h"

struct bhi_batches {
    size_t length;              /* runs in each */
    uint64_t least[BHI_RACERS]; /* the shortest of each racer */
};

/* How many runs the host measures at once, by the reference's claims in the first group. */
size_t bhi_batches_length(const struct bhi_series *series);
/* Batches of |length| runs; none yet. */
void bhi_batches_begin(size_t length, struct bhi_batches *out);
/* Measures |count| more. */
bool bhi_batches_take(struct bhi_batches *batches, struct bhi_series *series, size_t count);
/* What was seen of a racer, and what it claims. What a candidate claims is what is reported of it:
 * its median, or what |ratio| says, if that is less. 0: no ratio is known. */
struct bhi_seen bhi_batches_seen(const struct bhi_batches *batches, const struct bhi_series *series,
                                 enum bhi_racer racer, double ratio);

#endif
