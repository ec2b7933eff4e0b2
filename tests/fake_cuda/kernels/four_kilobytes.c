#include "tests/fake_cuda/kernel.h"

struct words {
    uint32_t at[1022];
};

/* As many parameters as every GPU takes. */
FAKE_KERNEL(four_kilobytes, (uint32_t *, sum), (struct words, words)) {
    (void)thread;
    uint32_t sum = 0;
    for (int i = 0; i < 1022; i++) {
        sum += p->words.at[i];
    }
    *p->sum = sum;
}
