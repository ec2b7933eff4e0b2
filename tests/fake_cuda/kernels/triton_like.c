#include "tests/fake_cuda/kernel.h"

/* As Triton compiles: two pointers to scratch memory come last. Each element says which of them there are,
 * and how many threads a block has. */
FAKE_KERNEL(triton_like, (const float *, x), (float *, y), (int32_t, count), (uint32_t *, scratch),
            (uint32_t *, profile)) {
    const uint32_t i = fake_index(thread);
    if (p->scratch) {
        p->scratch[thread->blockIdx.x] = i;
    }
    if ((int32_t)i < p->count) {
        p->y[i] = p->x[i] + (float)thread->blockDim.x + (p->scratch ? 10000 : 0) +
                  (p->profile ? 20000 : 0);
    }
}
