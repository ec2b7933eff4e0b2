#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(trap) {
    (void)thread, (void)p;
    __builtin_trap();
}
