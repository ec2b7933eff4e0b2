#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(saxpy, (const float *, x), (float *, y), (float, a), (uint32_t, count)) {
    const uint32_t i = fake_index(thread);
    if (i < p->count) {
        p->y[i] += p->a * p->x[i];
    }
}
