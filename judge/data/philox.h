/* Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a function
 * from a key and a counter to 128 random bits. It has no state, so each element of an array has its
 * own numbers, whatever was computed before it, and on every machine the same. */
#ifndef BHI_JUDGE_DATA_PHILOX_H
#define BHI_JUDGE_DATA_PHILOX_H

#include <stdint.h>

struct bhi_philox {
    uint32_t words[4];
};

enum { BHI_PHILOX_ROUNDS = 10 };

static inline struct bhi_philox bhi_philox(uint64_t key, struct bhi_philox counter) {
    uint32_t *c = counter.words;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < BHI_PHILOX_ROUNDS; round++) {
        const uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        const uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return counter;
}

#endif
