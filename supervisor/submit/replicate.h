/* Makes replicas (supervisor/buffer/replica.h). */
#ifndef BHI_SUPERVISOR_SUBMIT_REPLICATE_H
#define BHI_SUPERVISOR_SUBMIT_REPLICATE_H

#include <bulkhead/bulkhead.h>

/* Makes a replica of |of| for |stream| and keeps it: the copies are queued, on the stream of |of|
 * and on |stream|, and are ordered as any others. *out_copy is referenced, and charged to |stream|;
 * Returns BH_OUT_OF_DEVICE_MEMORY if its limit does not allow that. No lock. */
bh_status bhi_replicate(struct bh_stream *stream, struct bh_buffer *of, const char *call,
                        struct bh_buffer **out_copy, bh_detail *detail);

#endif
