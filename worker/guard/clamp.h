/* Indices into memory that is not a buffer's. */
#ifndef BHI_WORKER_GUARD_CLAMP_H
#define BHI_WORKER_GUARD_CLAMP_H

#include "worker/guard/state.h"

void bhi_guard_clamp(struct bhi_guard *g);

#endif
