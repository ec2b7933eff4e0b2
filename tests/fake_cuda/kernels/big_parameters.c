#include "tests/fake_cuda/kernel.h"

struct big {
    uint32_t words[16];
};

/* A word, a struct by value, and a byte after it. */
FAKE_KERNEL(big_parameters, (uint32_t *, sum), (uint8_t, first), (struct big, big),
            (uint8_t, last)) {
    (void)thread;
    uint32_t sum = p->first + p->last;
    for (int i = 0; i < 16; i++) {
        sum += p->big.words[i];
    }
    *p->sum = sum;
}
