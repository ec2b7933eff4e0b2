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
    bh_buffer *buffer; /* NULL: the task has none; borrowed */
    uint64_t begin;    /* of this run, in bytes */
};

/* Where array |index|, an input, begins in the buffer. */
uint64_t bhi_inputs_offset(const struct bhi_inputs *inputs, const struct bhi_task *task,
                           const struct bhi_trial *trial, uint32_t index);

/* What workers read that do not trust each other. */
enum { BHI_MATERIAL_READERS = 4 };

/* The inputs of some timed runs, which several workers read one after the other. */
struct bhi_material {
    const struct bhi_court *court;
    size_t count;             /* of runs */
    struct bhi_trial *trials; /* |count|; owned */
    uint64_t stride;          /* from one run's inputs to the next one's, in bytes; 0: none */
    void *content;            /* of what is in device memory: |count| strides; owned */
    /* Owned. Of host memory the first, for all readers: what they are given to read alone they
     * cannot write. A device's memory they could, so each reader has a copy. */
    bh_buffer *buffers[BHI_MATERIAL_READERS];
    bool written[BHI_MATERIAL_READERS]; /* of a device */
};

/* Makes the inputs of |count| runs, like those of |of|, but of the |seeds|; in memory that the court's
 * source makes and no contender's worker has: it gets it with the submission. After a failure
 * nothing is owned. */
bool bhi_material_make(const struct bhi_court *court, const struct bhi_trial *of,
                       const uint64_t *seeds, size_t count, struct bhi_material *out,
                       struct bhi_judge_outcome *outcome);
/* Where a reader finds the inputs of the first run. Readers with the same number trust each other. */
bool bhi_material_give(struct bhi_material *material, uint32_t reader, struct bhi_inputs *out,
                       struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_material_free(struct bhi_material *material);

#endif
