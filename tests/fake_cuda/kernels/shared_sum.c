#include "tests/fake_cuda/kernel.h"

/* The block's last thread adds what all have put into shared memory, of which the host gives a word a
 * thread. */
FAKE_KERNEL(shared_sum, (const uint32_t *, x), (uint32_t *, sums)) {
    uint32_t *words = thread->shared;
    words[thread->threadIdx.x] = p->x[fake_index(thread)];
    if (thread->threadIdx.x + 1 == thread->blockDim.x) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < thread->blockDim.x; i++) {
            sum += words[i];
        }
        p->sums[thread->blockIdx.x] = sum;
    }
}
FAKE_ATTRIBUTES(shared_sum, .max_threads = 512);
