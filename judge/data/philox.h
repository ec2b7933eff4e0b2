/* Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a function
 * from a key and a counter to 128 random bits. It has no state, so each element of an array has its
 * own numbers, whatever was computed before it, and on every machine the same. */
#ifndef BHI_JUDGE_DATA_PHILOX_H
#define BHI_JUDGE_DATA_PHILOX_H

#include <stdint.h>

struct bhi_philox {
    uint32_t words[4];
};

struct bhi_philox bhi_philox(uint64_t key, struct bhi_philox counter);

#endif
