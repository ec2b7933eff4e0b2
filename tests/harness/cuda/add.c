#include "tests/fake_cuda/kernel.h"

/* As shaders/add.comp. */
FAKE_KERNEL(add, (const int32_t *, a), (const int32_t *, b), (int32_t *, c)) {
    const uint32_t i = fake_index(thread);
    p->c[i] = p->a[i] + p->b[i];
}
