/* What all runs of one judging share. */
#ifndef BHI_JUDGE_CHECK_COURT_H
#define BHI_JUDGE_CHECK_COURT_H

#include "judge/check/trial.h"

struct bhi_court {
    const struct bhi_task *task;
    bh_context *context;  /* NULL after a signal has ended a compilation */
    const char *selector; /* of the device; "": the default */
    struct bhi_trials trials;
    uint64_t noise_seed; /* of what outputs hold before a run; nobody else knows it */
    uint64_t runs;       /* so far; each run has other noise */
};

#endif
