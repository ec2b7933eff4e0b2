#include "tests/fake_cuda/kernel.h"

/* Of the last thread. */
FAKE_KERNEL(assert) {
    (void)p;
    if (fake_index(thread) + 1 == thread->gridDim.x * thread->blockDim.x) {
        thread->fail(710);
    }
}
