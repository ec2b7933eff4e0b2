#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(nothing) {
    (void)thread, (void)p;
}
