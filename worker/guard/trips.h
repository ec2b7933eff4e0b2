/* Computes an upper bound of how often a loop runs, where the code shows one. */
#ifndef BHI_WORKER_GUARD_TRIPS_H
#define BHI_WORKER_GUARD_TRIPS_H

#include "worker/guard/cfg.h"
#include "worker/guard/values.h"

/* Iterations that a loop may have and be left alone, those of what is in it included. */
#define BHI_TRIPS_MAX     4096u
#define BHI_TRIPS_UNKNOWN UINT64_MAX

/* How often |loop|'s header runs, at most; BHI_TRIPS_UNKNOWN: not known, or more than BHI_TRIPS_MAX
 * times. |loop| is marked. */
uint64_t bhi_guard_trips(const struct bhi_values *values, const struct bhi_loop *loop);

#endif
