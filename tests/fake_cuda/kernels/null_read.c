#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(null_read, (uint32_t *, y)) {
    (void)thread;
    uintptr_t null = 0;
    __asm__("" : "+r"(null)); /* not for the compiler to see */
    *p->y = *(volatile uint32_t *)null;
}
