#include "tests/fake_cuda/kernel.h"

/* As shaders/square.comp; it does not know how long they are. */
FAKE_KERNEL(square, (const float *, x), (float *, y)) {
    const uint32_t i = fake_index(thread);
    p->y[i] = p->x[i] * p->x[i];
}
