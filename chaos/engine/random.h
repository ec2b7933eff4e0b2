/* Random numbers that are the same everywhere for the same seed: xoshiro256** (Blackman, Vigna),
 * seeded by splitmix64. Not for secrets. */
#ifndef BHI_CHAOS_ENGINE_RANDOM_H
#define BHI_CHAOS_ENGINE_RANDOM_H

#include <stdint.h>

struct bhi_random {
    uint64_t state[4];
};

/* Different values of |stream| give independent sequences. */
static inline void bhi_random_seed(struct bhi_random *random, uint64_t seed, uint64_t stream) {
    uint64_t x = seed ^ (stream * 0xd1342543de82ef95u);
    for (int i = 0; i < 4; i++) {
        uint64_t z = x += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        random->state[i] = z ^ (z >> 31);
    }
}

static inline uint64_t bhi_random_next(struct bhi_random *random) {
    uint64_t *s = random->state;
    const uint64_t fives = s[1] * 5, result = ((fives << 7) | (fives >> 57)) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Returns a number from 0 to |end| - 1; |end| is at least 1. */
static inline uint64_t bhi_random_below(struct bhi_random *random, uint64_t end) {
    return (uint64_t)(((unsigned __int128)bhi_random_next(random) * end) >> 64);
}

#endif
