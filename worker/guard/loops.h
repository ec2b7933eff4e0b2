/* Decides for each loop whether it is left alone, counted in rounds, or polls the abort word. */
#ifndef BHI_WORKER_GUARD_LOOPS_H
#define BHI_WORKER_GUARD_LOOPS_H

#include "worker/guard/state.h"

void bhi_guard_loops(struct bhi_guard *g);

#endif
