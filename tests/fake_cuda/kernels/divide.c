#include "tests/fake_cuda/kernel.h"

/* By zero, where the processor minds: a GPU's integers do not. */
FAKE_KERNEL(divide, (uint32_t *, y), (uint32_t, by)) {
    *p->y = thread->gridDim.x / p->by;
}
