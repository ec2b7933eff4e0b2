#include "tests/fake_cuda/kernel.h"

/* As shaders/hang.comp, with less heat. */
FAKE_KERNEL(hang, (uint32_t *, words)) {
    (void)p;
    for (;;) {
        thread->pause();
    }
}
