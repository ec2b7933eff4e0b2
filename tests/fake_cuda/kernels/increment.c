#include "tests/fake_cuda/kernel.h"

/* As tests/backend/kernels/increment.comp. */
FAKE_KERNEL(increment, (uint32_t *, word)) {
    if (fake_index(thread) == 0) {
        (*p->word)++;
    }
}
