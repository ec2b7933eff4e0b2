#include "tests/fake_cuda/kernel.h"

/* Each thread writes its place in the grid, in all three dimensions. */
FAKE_KERNEL(copy_index, (uint32_t *, y)) {
    const struct fake_cuda_dim *at = &thread->threadIdx, *block = &thread->blockIdx,
                               *size = &thread->blockDim, *grid = &thread->gridDim;
    const uint32_t x = block->x * size->x + at->x, y = block->y * size->y + at->y,
                   z = block->z * size->z + at->z;
    const uint32_t i = (z * grid->y * size->y + y) * grid->x * size->x + x;
    p->y[i] = i;
}
