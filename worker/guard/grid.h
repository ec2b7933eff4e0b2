/* How many workgroups there are, of a grid that runs in parts. */
#ifndef BHI_WORKER_GUARD_GRID_H
#define BHI_WORKER_GUARD_GRID_H

#include "worker/guard/state.h"

void bhi_guard_grid(struct bhi_guard *g);

#endif
