/* What a kernel gets where it reads what it has not written, if noise is asked for: numbers that no
 * result is near. */
#ifndef BHI_WORKER_GUARD_NOISE_H
#define BHI_WORKER_GUARD_NOISE_H

#include "worker/guard/state.h"

/* Is there noise of |type|? Of its arrays only with |arrays|. */
bool bhi_guard_has_noise(const struct bhi_ir *ir, uint32_t type, bool arrays);
/* Returns a constant of a type without arrays, another one with each call. It stands before |at|
 * among the globals, NULL: behind them. */
uint32_t bhi_guard_noise(struct bhi_guard *g, uint32_t type, struct bhi_ins *at);

#endif
