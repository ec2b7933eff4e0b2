/* How long a candidate takes, and the reference beside it. */
#ifndef BHI_JUDGE_CHECK_TIMING_H
#define BHI_JUDGE_CHECK_TIMING_H

#include <stdbool.h>
#include <stddef.h>

/* Times of one size, of candidate and reference, measured in turns. */
struct bhi_timing {
    size_t size; /* index in the task's sizes */
    size_t runs; /* timed runs of each */
    double median_ns, reference_ns;
    double ratio, low, high; /* candidate over reference: of the medians, and its 95 % interval; 0:
                                not known, because the device did not keep its pace (|drift|), the
                                reference was slower than alone, the claims exceeded a bound, or the
                                machine was too busy to confirm them */
    double noise;            /* relative, of the reference's median; 0.005 is 0.5 % */
    double drift;            /* relative, of the reference's median from the first half of the runs
                                to the second */
    double host_ns;          /* a run of the candidate by the host's clock, in batches */
    bool device;             /* by device timestamps; otherwise by the host's clock, in batches */
    bool cold;               /* caches were flushed before each run */
    bool noisy;              /* the noise stayed above the limit */
    double guard_ratio;      /* guarded over trusted; 0: not measured */
};

#endif
