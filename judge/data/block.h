/* How long the blocks of a bootstrap have to be. Times that follow one another are alike: the same
 * load, the same clock. Resampled one by one they would look like more than they are. */
#ifndef BHI_JUDGE_DATA_BLOCK_H
#define BHI_JUDGE_DATA_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Finds a length for |count| pairs of times, in the order in which they were taken: twice as many
 * as one independent pair is worth, by the autocorrelation of their ratio's ranks; at least the
 * cube root of |count|, at most a quarter of it. 0: memory ran out. |count| > 0. */
size_t bhi_block_length(const uint64_t *a, const uint64_t *b, size_t count);
/* By how much the interval has to be wider than what |count| times in blocks of |length| show: few
 * blocks vary less than what they are drawn from. 1 for many blocks. */
double bhi_block_widening(size_t count, size_t length);

#endif
