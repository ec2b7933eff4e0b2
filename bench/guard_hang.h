/* An endless kernel through libbulkhead, and what a neighbour on the same device feels of it. */
#ifndef BENCH_GUARD_HANG_H
#define BENCH_GUARD_HANG_H

#include "bench.h"

#define GUARD_DEADLINE_MS 100u

struct guard_hang {
    uint64_t poisoned_ns; /* from the launch; the deadline is GUARD_DEADLINE_MS */
    uint64_t stall_ns;    /* the longest that a neighbour's small job took meanwhile */
    uint64_t next_ns;     /* from the poison to the next good result on the same stream */
    bool same_worker;
};
struct guard_hang guard_hang_measure(const struct bench_options *options, bool trusted);

#endif
