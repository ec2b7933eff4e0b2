#include "tests/fake_cuda/kernel.h"

/* What the PTX of worker/cuda/warm_up.c does. */
FAKE_KERNEL(warm_up, (uint32_t *, word)) {
    (void)thread;
    *p->word = 0x57415231;
}
