#include "tests/fake_cuda/kernel.h"

/* As tests/system/gate.comp. What it writes is seen when it has ended, and what the host writes before
 * (C1): so it says that it runs, and is let go on, in the latch that word 1 names. */
FAKE_KERNEL(gate, (uint32_t *, words)) {
    if (fake_index(thread) > 0) {
        return;
    }
    volatile uint32_t *latch = thread->latches + p->words[1] % FAKE_CUDA_LATCHES;
    latch[1] = 1;
    while (latch[0] != 0x600D600D) {
        thread->pause();
    }
    p->words[0] = 0x600D600D;
    p->words[1] = 1;
}
