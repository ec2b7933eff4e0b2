/* Measures how long a candidate takes, beside the reference. */
#ifndef BHI_JUDGE_TIME_MEASURE_H
#define BHI_JUDGE_TIME_MEASURE_H

#include "judge/time/alone.h"
#include "judge/time/options.h"
#include "judge/time/processor.h"
#include "judge/time/round.h"

/* Measures candidates, one at a time. */
struct bhi_timekeeper {
    struct bhi_court *court;
    struct bhi_timing_options options;
    struct bhi_contender reference;
    struct bhi_contender itself; /* the reference with another worker, to be measured against */
    struct bhi_alone *alone;     /* of the reference; by the task's sizes; owned */
    bool spreads; /* the driver runs kernels on processors, and has several of them */
    struct bhi_processor processor; /* the one that it has; by default, if it could have several */
    struct bhi_base base;
    struct bhi_flush flush; /* {0}: caches are not flushed */
};

/* Starts the workers of the reference, of the empty kernel and of what flushes. */
bool bhi_timekeeper_open(struct bhi_court *court, const struct bhi_timing_options *options,
                         struct bhi_timekeeper *out, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_timekeeper_close(struct bhi_timekeeper *timer);
/* Measures a candidate that is CORRECT, in each size that is not only for checking. Replaces its
 * times; its verdict may change to TIMING_FORGED, SLOWER, WRONG, that of a run that failed, or
 * LOAD_FAILED if its file is not what was checked.
 * Returns false if the machine or the reference failed, or a signal came; then |outcome| says
 * why. */
bool bhi_timekeeper_measure(struct bhi_timekeeper *timer, struct bhi_candidate *candidate,
                            struct bhi_judge_outcome *outcome);

#endif
