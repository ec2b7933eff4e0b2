/* Replaces reads of the grid's size in kernels whose grid may run in parts. */
#ifndef BHI_WORKER_GUARD_GRID_H
#define BHI_WORKER_GUARD_GRID_H

#include "worker/guard/state.h"

void bhi_guard_grid(struct bhi_guard *g);

#endif
