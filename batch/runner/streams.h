/* The streams of a batch, one set for each device and memory limit that jobs ask for, and what
 * each device can bind. */
#ifndef BHI_BATCH_RUNNER_STREAMS_H
#define BHI_BATCH_RUNNER_STREAMS_H

#include "batch/runner/state.h"

/* Makes the streams of the kind in the batch's options. */
bool bhi_runner_make_streams(struct bhi_runner *runner, struct bhi_complaint *complaint);
/* Finds the kind of stream that the work needs, or makes it, and chooses the least busy stream.
 * Returns false if the work is over. */
bool bhi_runner_choose_stream(struct bhi_work *work);
/* Tells how much the device of the work's stream binds at once; *out_range 0: unknown. Blocks if
 * the device was not asked before. */
bh_status bhi_runner_limits(const struct bhi_work *work, uint64_t *out_range,
                            uint32_t *out_alignment, bh_detail *detail);
void bhi_runner_free_streams(struct bhi_runner *runner);

#endif
