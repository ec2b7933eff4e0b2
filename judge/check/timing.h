/* How long a candidate takes, and the reference beside it. */
#ifndef BHI_JUDGE_CHECK_TIMING_H
#define BHI_JUDGE_CHECK_TIMING_H

#include <stdbool.h>
#include <stddef.h>

/* Why a ratio is not known. */
enum bhi_doubt {
    BHI_DOUBT_NONE,
    BHI_DOUBT_CLAIMS, /* they exceed what the host saw, or it saw too little to confirm them */
    BHI_DOUBT_DRIFT,  /* the reference became slower or faster */
    BHI_DOUBT_LOAD,   /* the reference was slower than alone */
    BHI_DOUBTS,
};

/* Times of one size, of candidate and reference, measured in turns. */
struct bhi_timing {
    size_t size; /* index in the task's sizes */
    size_t runs; /* timed runs of each */
    double median_ns, reference_ns;
    double ratio, low, high; /* candidate over reference: of the medians, and its 95 % interval; 0:
                                not known */
    enum bhi_doubt doubt;    /* if it is not known: why */
    double noise;            /* relative, of the reference's median; 0.005 is 0.5 % */
    double drift;            /* relative, of the reference's median from the first half of the runs
                                to the second */
    double host_ns;          /* a run of the candidate by the host's clock, in batches; if
                                |one_processor|: by the processor time of its worker */
    bool device;             /* by device timestamps; otherwise by the host's clock, in batches */
    bool cold;               /* caches were flushed before each run */
    bool noisy;              /* the noise stayed above the limit */
    bool spreads;            /* over processors, on which the driver runs kernels */
    bool one_processor;      /* the driver runs kernels on processors, and had one of them */
    double guard_ratio;      /* guarded over trusted; 0: not measured */
};

#endif
