#include "tests/fake_cuda/kernel.h"

/* As tests/backend/kernels/add.comp: y[i] = x[i] + c */
FAKE_KERNEL(add, (const uint32_t *, x), (uint32_t *, y), (uint32_t, c), (uint32_t, count)) {
    const uint32_t i = fake_index(thread);
    if (i < p->count) {
        p->y[i] = p->x[i] + p->c;
    }
}
