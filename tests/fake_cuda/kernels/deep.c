#include "tests/fake_cuda/kernel.h"

static uint32_t descend(volatile const uint32_t *above, uint32_t depth) {
    volatile uint32_t here[256];
    here[0] = *above + 1;
    return depth == 0 ? here[0] : descend(here, depth - 1) + here[0];
}

/* A kibibyte of stack for each step. */
FAKE_KERNEL(deep, (uint32_t *, y), (uint32_t, depth)) {
    (void)thread;
    *p->y = descend(p->y, p->depth);
}
