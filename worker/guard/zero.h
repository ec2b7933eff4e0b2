/* Workgroup memory begins as zero. */
#ifndef BHI_WORKER_GUARD_ZERO_H
#define BHI_WORKER_GUARD_ZERO_H

#include "worker/guard/state.h"

void bhi_guard_zero(struct bhi_guard *g);

#endif
