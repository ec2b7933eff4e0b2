#include "chaos/check/oracle.h"

#include <sodium.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are hashed as they lie in memory");

static uint32_t rotated(uint32_t word, uint32_t by) {
    by &= 31;
    return by ? word << by | word >> (32 - by) : word;
}

void bhi_oracle_compute(const struct bhi_chaos_work *work, const uint32_t *const *inputs,
                        uint32_t input_count, uint32_t *out) {
    for (uint32_t i = 0; i < work->words; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < input_count; k++) {
            sum += inputs[k][i];
        }
        out[i] = sum;
    }
    /* One round over all words, then the next, so that the compiler can use vector instructions. */
    for (uint32_t round = 0; round < work->rounds; round++) {
        for (uint32_t i = 0; i < work->words; i++) {
            out[i] =
                (out[i] * work->multiplier + work->addend) ^ rotated(i * 0x9e3779b9u, work->shift);
        }
    }
}

void bhi_oracle_digest(const uint32_t *words, uint32_t count,
                       uint8_t out_digest[BHI_CHAOS_DIGEST]) {
    crypto_generichash(out_digest, BHI_CHAOS_DIGEST, (const unsigned char *)words,
                       (size_t)count * sizeof *words, NULL, 0);
}
