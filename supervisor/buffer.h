/* Buffers: a sealed memfd mapped here, and who writes and reads it now.
 *
 * Content (B5) is decided by the writers that count: PENDING while one of them is, POISONED when
 * one of them is poisoned, CLEAN otherwise. A writer that overwrites the whole, or read what was
 * there before, counts instead of those before it. But they stay in the list until they have ended:
 * it may itself be cancelled or poisoned early, and whoever comes next must not start, nor the host
 * write, while they still write. */
#ifndef BHI_BUFFER_H
#define BHI_BUFFER_H

#include "context.h"
#include "list.h"
#include <bulkhead/bulkhead.h>

struct bhi_buffer_user {
    struct bh_event *event; /* referenced */
    bool counts; /* its end decides the content; otherwise it only has to be waited for */
};

struct bhi_user_list {
    struct bhi_buffer_user *users;
    uint32_t count, capacity;
};

struct bh_buffer {
    struct bhi_doomed doomed; /* first */
    _Atomic uint32_t refs;
    bh_context *context; /* referenced */
    uint64_t id;
    uint64_t size;
    uint64_t mapped; /* bytes of the mapping */
    int fd;
    void *pointer;
    struct bhi_user_list writers; /* lock; those that have ended well are pruned */
    struct bhi_user_list readers; /* lock; those that have ended are pruned */
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
