/* Splits a counted loop in two: the outer loop polls the abort word, the inner loop runs a chunk of
 * bounded length. */
#ifndef BHI_WORKER_GUARD_LOWER_H
#define BHI_WORKER_GUARD_LOWER_H

#include "worker/guard/cfg.h"
#include "worker/guard/state.h"
#include "worker/guard/values.h"

/* |loop| must be marked. If it can be lowered, loop->exit is filled in. */
bool bhi_guard_can_lower(struct bhi_guard *g, const struct bhi_values *values,
                         struct bhi_loop *loop);
void bhi_guard_lower(struct bhi_guard *g, struct bhi_loop *loop);

#endif
