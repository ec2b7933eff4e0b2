/* Buffers with content, in the host's memory or a device's. */
#ifndef BHI_JUDGE_CHECK_CONTENT_H
#define BHI_JUDGE_CHECK_CONTENT_H

#include <bulkhead/bulkhead.h>

#include "judge/check/outcome.h"

/* Memory for an array, for free(); NULL: it ran out. A large one has large pages where the kernel gives
 * them: a judge spends a fifth of its time on the faults of small ones otherwise. */
void *bhi_content_room(uint64_t size);
/* Makes a buffer in the memory of the device of |near|, if it has one of its own; NULL: in the
 * host's. */
bool bhi_content_make(bh_context *context, bh_stream *near, uint64_t size, bh_buffer **out_buffer,
                      struct bhi_judge_outcome *outcome);
/* Is its content mapped here? Otherwise it is in a device's memory. */
bool bhi_content_is_mapped(const bh_buffer *buffer);
/* Gives room for |size| bytes that will be the buffer's content: call bhi_content_commit when they
 * are there. */
bool bhi_content_begin(bh_buffer *buffer, uint64_t size, void **out_room,
                       struct bhi_judge_outcome *outcome);
bool bhi_content_commit(bh_buffer *buffer, uint64_t size, void *room,
                        struct bhi_judge_outcome *outcome);
/* Overwrites a part. */
bool bhi_content_write(bh_buffer *buffer, uint64_t offset, const void *bytes, uint64_t size,
                       struct bhi_judge_outcome *outcome);
/* Gives a part to read, until bhi_content_leave or _take. */
bool bhi_content_read(bh_buffer *buffer, uint64_t offset, uint64_t size, void **out_room,
                      struct bhi_judge_outcome *outcome);
void bhi_content_leave(bh_buffer *buffer, void *room);
/* Leaves it, but |size| bytes from |offset| in the room: the caller owns them. NULL: memory ran out. */
void *bhi_content_take(bh_buffer *buffer, void *room, uint64_t offset, uint64_t size);

#endif
