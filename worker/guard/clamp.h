/* Clamps indices into arrays outside of buffers, so that a kernel stays inside its own
 * variables. */
#ifndef BHI_WORKER_GUARD_CLAMP_H
#define BHI_WORKER_GUARD_CLAMP_H

#include "worker/guard/state.h"

void bhi_guard_clamp(struct bhi_guard *g);

#endif
