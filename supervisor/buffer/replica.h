/* Replicas: copies of a buffer in device memory for streams that cannot use its memory itself (D4):
 * those of another tenant, which could write it, and those on another device. A command names the
 * buffer; the submission binds the replica.
 *
 * They are in host memory where a stream has no device memory that a worker can share.
 *
 * The context keeps one for each buffer, tenant and device, of the newest version that was read
 * there. It is dropped when the buffer is written or gone, when the stream that it was made for is
 * released, and when its memory is needed. A submission that uses it keeps it until it has ended.
 */
#ifndef BHI_SUPERVISOR_BUFFER_REPLICA_H
#define BHI_SUPERVISOR_BUFFER_REPLICA_H

#include "supervisor/context/context.h"

struct bh_buffer;
struct bh_stream;

struct bhi_replica {
    struct bhi_list link;     /* context->replicas, the oldest first */
    struct bh_buffer *of;     /* not referenced: its end drops the replica */
    struct bh_buffer *copy;   /* referenced, charged to |stream| */
    struct bh_stream *stream; /* referenced; of the tenant and the device that may use it */
};

void bhi_replicas_init(bh_context *context);
/* Returns the replica that a submission of |stream| reads instead of |of|; NULL: it must be made.
 * Lock held. */
struct bh_buffer *bhi_replica_find(const struct bh_stream *stream, struct bh_buffer *of);
/* Keeps |copy|, of |version|, for later submissions. Does nothing if |of| has a newer version, if
 * it or |stream| was released, or if out of memory. The caller keeps its reference. Lock held. */
void bhi_replica_keep(struct bh_stream *stream, struct bh_buffer *of, uint64_t version,
                      struct bh_buffer *copy);

#endif
