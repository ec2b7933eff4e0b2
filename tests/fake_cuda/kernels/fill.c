#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(fill, (uint32_t *, y), (uint32_t, value), (uint32_t, count)) {
    const uint32_t i = fake_index(thread);
    if (i < p->count) {
        p->y[i] = p->value;
    }
}
