#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(wild_write, (uint64_t, address), (uint32_t, value)) {
    (void)thread;
    *(volatile uint32_t *)(uintptr_t)p->address = p->value;
}
