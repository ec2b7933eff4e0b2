/* Computes an upper bound for the number of iterations, if the code shows one. */
#ifndef BHI_WORKER_GUARD_TRIPS_H
#define BHI_WORKER_GUARD_TRIPS_H

#include "worker/guard/cfg.h"
#include "worker/guard/values.h"

/* The most iterations of a loop that is left alone, with those of its inner loops. */
#define BHI_TRIPS_MAX     4096u
#define BHI_TRIPS_UNKNOWN UINT64_MAX

/* Returns the most times that |loop|'s header runs, or BHI_TRIPS_UNKNOWN if that is unknown or more
 * than BHI_TRIPS_MAX. |loop| must be marked. */
uint64_t bhi_guard_trips(const struct bhi_values *values, const struct bhi_loop *loop);

#endif
