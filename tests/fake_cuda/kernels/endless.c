#include "tests/fake_cuda/kernel.h"

/* Says that it runs, and goes on until the word is 0 again. */
FAKE_KERNEL(endless, (uint32_t *, word)) {
    __atomic_store_n(p->word, 1u, __ATOMIC_RELEASE);
    while (__atomic_load_n(p->word, __ATOMIC_ACQUIRE) != 0) {
        thread->pause();
    }
}
