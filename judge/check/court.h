/* What all runs of one judging share. Once the reference has run, several threads use it. */
#ifndef BHI_JUDGE_CHECK_COURT_H
#define BHI_JUDGE_CHECK_COURT_H

#include <stdatomic.h>

#include "judge/check/trial.h"
#include "tool/content_hash.h"

struct bhi_court {
    const struct bhi_task *task;
    bh_context *context;  /* after a signal: destroyed, and then NULL */
    const char *selector; /* of the device; "": the default */
    char device[48];      /* on which the reference has run: its selector */
    struct bhi_trials trials;
    uint8_t reference[BHI_CONTENT_HASH]; /* hash of the kernel that computed what is expected */
    bh_stream *source;     /* its worker makes what timed runs read, and runs no kernel; borrowed */
    uint32_t processor;    /* on which runs are timed, plus 1; 0: on all */
    uint32_t slowdown;     /* how many times as long as others those may take; 0: the same */
    uint64_t noise_seed;   /* of what outputs hold before a run; nobody else knows it */
    _Atomic uint64_t runs; /* so far; each run has other noise */
};

#endif
