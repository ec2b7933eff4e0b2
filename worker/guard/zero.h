/* Adds code that sets workgroup memory to zero when the kernel starts. */
#ifndef BHI_WORKER_GUARD_ZERO_H
#define BHI_WORKER_GUARD_ZERO_H

#include "worker/guard/state.h"

void bhi_guard_zero(struct bhi_guard *g);

#endif
