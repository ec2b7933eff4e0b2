/* Buffers: a sealed memfd mapped here, and who writes and reads it now.
 *
 * Content (B5): PENDING while one of |writers| is, POISONED when one of them is poisoned, CLEAN
 * otherwise. A writer that covers the whole replaces the list, any other joins it. */
#ifndef BHI_BUFFER_H
#define BHI_BUFFER_H

#include "context.h"
#include "list.h"
#include <bulkhead/bulkhead.h>

/* Events, referenced. */
struct bhi_event_list {
    struct bh_event **events;
    uint32_t count, capacity;
};

struct bh_buffer {
    struct bhi_doomed doomed; /* first */
    _Atomic uint32_t refs;
    struct bhi_list link; /* lock; context->buffers */
    bh_context *context;  /* referenced */
    uint64_t id;
    uint64_t size;
    uint64_t mapped; /* bytes of the mapping */
    int fd;
    void *pointer;
    struct bhi_event_list writers; /* lock; ended well: pruned */
    struct bhi_event_list readers; /* lock; pending ones, ended: pruned */
    uint64_t visit; /* lock; id of the submission that is being built, for its index in uses */
    uint32_t visit_index;
};

void bhi_buffer_unref_locked(struct bh_buffer *buffer); /* lock held */
/* Room for one more writer and reader, so that bhi_buffer_used cannot fail. Lock held. */
bool bhi_buffer_reserve(struct bh_buffer *buffer);
/* The submission behind |event| uses the buffer from now on. Lock held. */
void bhi_buffer_used(struct bh_buffer *buffer, struct bh_event *event, bool reads, bool writes,
                     bool overwrites);

#endif
