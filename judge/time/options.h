/* What is timed, and how. */
#ifndef BHI_JUDGE_TIME_OPTIONS_H
#define BHI_JUDGE_TIME_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { BHI_TIMED_RUNS = 50, BHI_TIMED_RUNS_LEAST = 5, BHI_TIMED_RUNS_MOST = 100000 };

struct bhi_timing_options {
    size_t runs; /* timed runs of each size, of candidate and reference each */
    bool warm;   /* caches are not flushed */
    /* A driver that runs kernels on processors has all of them. Otherwise it has one. */
    bool all_processors;
    bool guard; /* the candidate is also timed without the guard */
    /* A candidate that surely takes more than this many times as long as the reference is SLOWER.
     * 0: none is. */
    double slower;
};

#endif
