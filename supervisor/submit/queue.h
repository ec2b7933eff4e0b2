/* The way of a submission from its payload into its stream's queue. */
#ifndef BHI_SUPERVISOR_SUBMIT_QUEUE_H
#define BHI_SUPERVISOR_SUBMIT_QUEUE_H

#include <bulkhead/bulkhead.h>

struct bhi_payload;

/* Makes a payload, whose record has |capacity| bytes and no commands. NULL: out of memory. */
struct bhi_payload *bhi_payload_start(bh_stream *stream, uint32_t command_count, uint64_t capacity);
/* Takes the lock. From here on it has an id, and ends in bhi_payload_finish. */
bh_status bhi_payload_enter(struct bhi_payload *payload, const char *call, bh_detail *detail);
/* Queues the submission, or abandons it if |status| is not BH_OK, and drops the lock. *out_event
 * (may be NULL) is referenced, and has |handles| of the caller's references. */
bh_status bhi_payload_finish(struct bhi_payload *payload, bh_status status, bh_event *const *waits,
                             uint32_t wait_count, uint32_t handles, const char *call,
                             bh_event **out_event, bh_detail *detail);

#endif
