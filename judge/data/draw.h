/* Random bits for many elements at once. */
#ifndef BHI_JUDGE_DATA_DRAW_H
#define BHI_JUDGE_DATA_DRAW_H

#include <stdint.h>

/* Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a function
 * from a key and a counter to 128 random bits. It has no state, so each element of an array has its
 * own numbers, whatever was computed before it, and on every machine the same. */

struct bhi_philox {
    uint32_t words[4];
};

enum { BHI_PHILOX_ROUNDS = 10 };

/* Multipliers, and what is added to the key from round to round. */
#define BHI_PHILOX_M0 0xD2511F53u
#define BHI_PHILOX_M1 0xCD9E8D57u
#define BHI_PHILOX_W0 0x9E3779B9u
#define BHI_PHILOX_W1 0xBB67AE85u

static inline struct bhi_philox bhi_philox(uint64_t key, struct bhi_philox counter) {
    uint32_t *c = counter.words;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < BHI_PHILOX_ROUNDS; round++) {
        const uint64_t a = (uint64_t)c[0] * BHI_PHILOX_M0, b = (uint64_t)c[2] * BHI_PHILOX_M1;
        const uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)a;
        k0 += BHI_PHILOX_W0;
        k1 += BHI_PHILOX_W1;
    }
    return counter;
}

/* Elements that are drawn for together, and those that one instruction works on: counts are
 * multiples of BHI_LANES. */
enum { BHI_BLOCK = 512, BHI_LANES = 8 };

/* Word k of element i is words[k][i]. */
struct bhi_draws {
    uint32_t words[4][BHI_BLOCK];
};

/* Draws for |count| elements. The counter of element i is |first|, plus offsets[i] in word 0: no sum
 * is 2^32 or more. */
void bhi_draw(uint64_t key, struct bhi_philox first, const uint32_t offsets[BHI_BLOCK],
              uint32_t count, struct bhi_draws *out);
/* The same, on any processor. */
void bhi_draw_plainly(uint64_t key, struct bhi_philox first, const uint32_t offsets[BHI_BLOCK],
                      uint32_t count, struct bhi_draws *out);

#endif
