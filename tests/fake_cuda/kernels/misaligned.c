#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(misaligned, (uint32_t *, y)) {
    uintptr_t at = (uintptr_t)p->y + 1;
    if (at % 4 != 0) {
        thread->fail(716);
    }
    *(uint32_t *)at = 0;
}
