#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(counter, (uint32_t *, count)) {
    (void)thread;
    __atomic_fetch_add(p->count, 1u, __ATOMIC_RELAXED);
}
