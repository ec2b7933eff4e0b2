#include "tests/fake_cuda/kernel.h"

FAKE_KERNEL(hang) {
    (void)p;
    for (;;) {
        thread->pause();
    }
}
