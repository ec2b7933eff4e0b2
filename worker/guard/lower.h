/* Splits a counted loop in two: the outer one polls the abort word, the inner one runs a bounded
 * round. */
#ifndef BHI_WORKER_GUARD_LOWER_H
#define BHI_WORKER_GUARD_LOWER_H

#include "worker/guard/cfg.h"
#include "worker/guard/state.h"
#include "worker/guard/values.h"

/* |loop| is marked; if it can, loop->exit says how. */
bool bhi_guard_can_lower(struct bhi_guard *g, const struct bhi_values *values,
                         struct bhi_loop *loop);
void bhi_guard_lower(struct bhi_guard *g, struct bhi_loop *loop);

#endif
