#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(writes_first, (uint32_t *, y), (uint32_t, value)) {
    if (fake_index(thread) == 0) {
        *p->y = p->value;
    }
}
