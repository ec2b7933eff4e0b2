#include "tests/fake_cuda/kernel.h"

/* As tests/system/derive.comp. */
FAKE_KERNEL(derive, (uint32_t *, out), (const uint32_t *, in), (uint32_t, k)) {
    const uint32_t i = fake_index(thread);
    p->out[i] = p->in[i] * p->k + i;
}
