/* Makes replicas (supervisor/buffer/replica.h). */
#ifndef BHI_SUPERVISOR_SUBMIT_REPLICATE_H
#define BHI_SUPERVISOR_SUBMIT_REPLICATE_H

#include <bulkhead/bulkhead.h>

struct bhi_made_replica;

/* Makes a replica of |made|->of for |stream| and keeps it: the copies are queued, on the stream of
 * |of| and on |stream|, and are ordered as any others. If made->mover is set, an existing replica
 * is taken. made->copy is referenced, and charged to |stream|; made->version is set. Returns
 * BH_OUT_OF_DEVICE_MEMORY if its limit does not allow that. No lock. */
bh_status bhi_replicate(struct bh_stream *stream, struct bhi_made_replica *made, const char *call,
                        bh_detail *detail);

#endif
