/* How long the reference takes while no candidate has a worker. A candidate's worker that was taken
 * over could keep the device or the processor busy in the reference's turns alone: then the
 * reference would look slow, and the candidate fast. */
#ifndef BHI_JUDGE_TIME_ALONE_H
#define BHI_JUDGE_TIME_ALONE_H

#include "judge/data/steady.h"
#include "judge/time/batch.h"
#include "judge/time/overhead.h"
#include "judge/time/series.h"

/* Of one size. */
struct bhi_alone {
    struct bhi_steadiness steadiness; /* of its times; a median of 0: not measured yet */
    struct bhi_overhead overhead;     /* of its runs, by the host's clock; of a device with one */
    struct bhi_seen seen;             /* of its batches; of a device with a clock */
};

/* Looks at the reference's times in a series, not at batches. Returns false if memory ran out. */
bool bhi_alone_of(const struct bhi_series *series, struct bhi_alone *out);
/* Measures the reference against itself, in turns, in |count| rounds. |race| has it as reference
 * and, with a worker of its own, as candidate. */
bool bhi_alone_measure(const struct bhi_race *race, size_t count, struct bhi_alone *out,
                       struct bhi_judge_outcome *outcome);
/* Was the reference, |beside| a candidate, surely slower than alone? By more than 5 %, or, for the
 * host, by what bhi_overhead_exceeds names. */
bool bhi_alone_was_faster(const struct bhi_alone *alone, const struct bhi_alone *beside);
/* Nobody can make the reference faster than it is: what was measured beside a candidate counts as
 * alone, where it is less. But what it varies by, others can make more. */
void bhi_alone_lower(struct bhi_alone *alone, const struct bhi_alone *beside);

#endif
