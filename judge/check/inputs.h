/* What the timed runs of one submission read, in one buffer: so a worker that is given it imports
 * memory once, however many runs and arrays there are. */
#ifndef BHI_JUDGE_CHECK_INPUTS_H
#define BHI_JUDGE_CHECK_INPUTS_H

#include "judge/check/court.h"
#include "judge/check/outcome.h"

/* Where the inputs of one run are. {0}: it makes buffers of its own for them. */
struct bhi_inputs {
    bh_buffer *buffer; /* NULL: the task has none */
    uint64_t begin;    /* of this run, in bytes */
};

/* Makes the buffer, in memory that the court's source makes and no contender's worker has: it gets
 * it with the submission. Run |i| reads the inputs of trials[i] at i * *out_stride. */
bool bhi_inputs_make(const struct bhi_court *court, const struct bhi_trial *trials, size_t count,
                     bh_buffer **out_buffer, uint64_t *out_stride,
                     struct bhi_judge_outcome *outcome);
/* Where array |index|, an input, begins in the buffer. */
uint64_t bhi_inputs_offset(const struct bhi_inputs *inputs, const struct bhi_task *task,
                           const struct bhi_trial *trial, uint32_t index);

#endif
