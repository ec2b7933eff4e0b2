#include "tests/fake_cuda/kernel.h"

/* As tests/system/mix.comp. */
FAKE_KERNEL(mix, (uint32_t *, out), (const uint32_t *, in), (uint32_t, k), (uint32_t, rounds)) {
    const uint32_t i = fake_index(thread);
    for (uint32_t n = 0; n < p->rounds; n++) {
        p->out[i] = p->out[i] * p->k + p->in[i];
    }
}
