#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(empty) {
    (void)thread, (void)p;
}
