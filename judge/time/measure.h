/* Measures how long a candidate takes, beside the reference. */
#ifndef BHI_JUDGE_TIME_MEASURE_H
#define BHI_JUDGE_TIME_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#include "judge/check/candidate.h"
#include "judge/data/ratio.h"
#include "judge/time/bound.h"
#include "judge/time/processor.h"
#include "judge/time/round.h"
#include "judge/time/series.h"

/* How long the reference takes while no candidate has a worker. A candidate's worker that was taken
 * over could keep the device or the processor busy in the reference's turns alone: then the
 * reference would look slow, and the candidate fast. Of one size. */
struct bhi_alone {
    struct bhi_steadiness steadiness; /* of its times; a median of 0: not measured yet */
    struct bhi_overhead overhead;     /* of its runs, by the host's clock; of a device with one */
    struct bhi_seen seen;             /* of its batches; of a device with a clock */
};

/* Looks at the reference's times in a series, not at batches. Returns false if memory ran out. */
bool bhi_alone_of(const struct bhi_series *series, struct bhi_alone *out);
/* Was the reference, |beside| a candidate, surely slower than alone? By more than 5 %, or, for the
 * host, by what bhi_overhead_exceeds names. */
bool bhi_alone_was_faster(const struct bhi_alone *alone, const struct bhi_alone *beside);
/* Nobody can make the reference faster than it is: what was measured beside a candidate counts as
 * alone, where it is less. But what it varies by, others can make more. */
void bhi_alone_lower(struct bhi_alone *alone, const struct bhi_alone *beside);

/* Timed runs of each size, of candidate and reference each: by default, and the limits. */
enum { BHI_TIMED_RUNS = 50, BHI_TIMED_RUNS_LEAST = 5, BHI_TIMED_RUNS_MOST = 100000 };

/* The trial of a size that is timed; NULL: it is not. */
const struct bhi_trial *bhi_timed_trial(const struct bhi_court *court, size_t size);

/* Makes a candidate that is CORRECT SLOWER, if its times say so, which an earlier run has measured,
 * maybe with other options. Returns false if they do not suffice and it has to be measured: a size is missing that
 * could change the verdict, a ratio is not known, or the options ask for something else (other
 * caches, the guard's cost). */
bool bhi_slower_judge_known(const struct bhi_court *court, const bh_judge_options *options,
                            bh_judgement *out);

/* Measures candidates, one at a time. */
struct bhi_timekeeper {
    struct bhi_court *court;
    bh_judge_options options;       /* those for times */
    struct bhi_contender reference; /* or the baseline */
    struct bhi_reference truth;     /* beside a baseline: computes what is expected */
    struct bhi_contender itself;    /* the reference with another worker, to be measured against */
    struct bhi_alone *alone;        /* of the reference; by the task's sizes; owned */
    bool on_processor;              /* the driver runs kernels on processors */
    bool spreads; /* the driver runs kernels on processors, and has several of them */
    struct bhi_processor processor; /* the one that it has; by default, if it could have several */
    struct bhi_maker maker;         /* of the court's source */
    struct bhi_base base;
    struct bhi_flush flush; /* {0}: caches are not flushed */
};

/* Starts the workers of the reference, of the empty kernel and of what flushes. */
bool bhi_timekeeper_open(struct bhi_court *court, const bh_judge_options *options,
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
