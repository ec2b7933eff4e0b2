#define FAKE_KERNEL_ARCH 75
#include "tests/fake_cuda/kernel.h"

/* For another device. */
FAKE_KERNEL(other_arch) {
    (void)thread, (void)p;
}
