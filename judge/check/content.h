/* Buffers with content, in the host's memory or a device's. */
#ifndef BHI_JUDGE_CHECK_CONTENT_H
#define BHI_JUDGE_CHECK_CONTENT_H

#include <bulkhead/bulkhead.h>

#include "judge/check/outcome.h"
#include "judge/check/trial.h"

/* Makes a buffer in the memory of the device of |near|, if it has one of its own; NULL: in the
 * host's. */
bool bhi_content_make(bh_context *context, bh_stream *near, uint64_t size, bh_buffer **out_buffer,
                      struct bhi_judge_outcome *outcome);
/* Gives room for |size| bytes that will be the buffer's content: call bhi_content_commit when they
 * are there, or bhi_content_leave. */
bool bhi_content_begin(bh_buffer *buffer, uint64_t size, void **out_room,
                       struct bhi_judge_outcome *outcome);
bool bhi_content_commit(bh_buffer *buffer, uint64_t size, void *room,
                        struct bhi_judge_outcome *outcome);
/* Gives the content to read, until bhi_content_leave. */
bool bhi_content_read(bh_buffer *buffer, uint64_t size, void **out_room,
                      struct bhi_judge_outcome *outcome);
void bhi_content_leave(bh_buffer *buffer, void *room);

/* What the timed runs of one submission read, in one buffer: so a worker that is given it imports
 * memory once, however many runs and arrays there are. */

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
