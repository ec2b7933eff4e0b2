#include "judge/data/draw.h"

#include "judge/data/wide.h"

void bhi_draw_plainly(uint64_t key, struct bhi_philox first, const uint32_t offsets[BHI_BLOCK],
                      uint32_t count, struct bhi_draws *out) {
    for (uint32_t i = 0; i < count; i++) {
        struct bhi_philox counter = first;
        counter.words[0] += offsets[i];
        const struct bhi_philox bits = bhi_philox(key, counter);
        out->words[0][i] = bits.words[0];
        out->words[1][i] = bits.words[1];
        out->words[2][i] = bits.words[2];
        out->words[3][i] = bits.words[3];
    }
}

#if defined(__x86_64__) && !defined(BHI_PLAIN)
#include <immintrin.h>

/* Four counters, each word in the lower half of 64 bits, where the product of two words fits. What
 * is in the upper halves does not matter. */
struct four {
    __m256i c[4];
};

BHI_WIDE static inline struct four philox_of_four(uint64_t key, struct four counter) {
    const __m256i m0 = _mm256_set1_epi64x(BHI_PHILOX_M0), m1 = _mm256_set1_epi64x(BHI_PHILOX_M1);
    __m256i *c = counter.c;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < BHI_PHILOX_ROUNDS; round++) {
        const __m256i a = _mm256_mul_epu32(c[0], m0), b = _mm256_mul_epu32(c[2], m1);
        const __m256i b_key = _mm256_xor_si256(_mm256_srli_epi64(b, 32), _mm256_set1_epi64x(k0));
        const __m256i a_key = _mm256_xor_si256(_mm256_srli_epi64(a, 32), _mm256_set1_epi64x(k1));
        c[0] = _mm256_xor_si256(b_key, c[1]);
        c[1] = b;
        c[2] = _mm256_xor_si256(a_key, c[3]);
        c[3] = a;
        k0 += BHI_PHILOX_W0;
        k1 += BHI_PHILOX_W1;
    }
    return counter;
}

/* Compilers make other code of the loop above: most of it moves words from here to there. */
BHI_WIDE static void draw_widely(uint64_t key, struct bhi_philox first,
                                 const uint32_t offsets[BHI_BLOCK], uint32_t count,
                                 struct bhi_draws *out) {
    struct four start;
    for (int k = 0; k < 4; k++) {
        start.c[k] = _mm256_set1_epi32((int)first.words[k]);
    }
    for (uint32_t i = 0; i < count; i += BHI_LANES) {
        struct four even = start, odd = start;
        even.c[0] = _mm256_add_epi32(start.c[0], _mm256_loadu_si256((const void *)(offsets + i)));
        odd.c[0] = _mm256_srli_epi64(even.c[0], 32);
        even = philox_of_four(key, even);
        odd = philox_of_four(key, odd);
        for (int k = 0; k < 4; k++) {
            const __m256i upper = _mm256_slli_epi64(odd.c[k], 32);
            _mm256_storeu_si256((void *)&out->words[k][i],
                                _mm256_blend_epi32(even.c[k], upper, 0xAA));
        }
    }
}

void bhi_draw(uint64_t key, struct bhi_philox first, const uint32_t offsets[BHI_BLOCK],
              uint32_t count, struct bhi_draws *out) {
    (bhi_is_wide() ? draw_widely : bhi_draw_plainly)(key, first, offsets, count, out);
}
#else
void bhi_draw(uint64_t key, struct bhi_philox first, const uint32_t offsets[BHI_BLOCK],
              uint32_t count, struct bhi_draws *out) {
    bhi_draw_plainly(key, first, offsets, count, out);
}
#endif
