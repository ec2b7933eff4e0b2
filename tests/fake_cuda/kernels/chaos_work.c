#include "tests/fake_cuda/kernel.h"

/* As shaders/chaos_work.comp. */
FAKE_KERNEL(chaos_work, (const uint32_t *, a), (const uint32_t *, b), (const uint32_t *, c),
            (const uint32_t *, d), (uint32_t *, result), (uint32_t, words), (uint32_t, inputs),
            (uint32_t, multiplier), (uint32_t, addend), (uint32_t, shift), (uint32_t, rounds)) {
    const uint32_t i = fake_index(thread);
    if (i >= p->words) {
        return;
    }
    const uint32_t *const inputs[] = {p->a, p->b, p->c, p->d};
    uint32_t x = 0, y = i * 0x9e3779b9u;
    for (uint32_t k = 0; k < p->inputs; k++) {
        x += inputs[k][i];
    }
    y = y << (p->shift & 31) | y >> ((32 - p->shift) & 31);
    for (uint32_t round = 0; round < p->rounds; round++) {
        x = (x * p->multiplier + p->addend) ^ y;
    }
    p->result[i] = x;
}
