/* The content of a buffer: who writes and reads it now.
 *
 * It is decided by the writers that count (B5): PENDING while one of them is, POISONED when one of
 * them is poisoned, CLEAN otherwise. A writer that overwrites the whole, or read what was there
 * before, counts instead of those before it. But they stay in the list until they have ended: it
 * may itself be cancelled or poisoned early, and whoever comes next must not start, nor the host
 * write, while they still write.
 *
 * Users are kept by stream, in order: what comes next on a stream is ordered after them by the
 * lane, and passes them over without a look, however many there are. */
#ifndef BHI_CORE_CONTENT_H
#define BHI_CORE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

struct bh_event;
struct bhi_core_stream;

struct bhi_content_group {
    const struct bhi_core_stream *stream; /* whose; never dereferenced, it may be gone */
    struct bh_event **users;              /* referenced; those before |first| are gone */
    uint32_t first, counting, end;        /* [counting, end) decide the content */
    uint32_t capacity;
};

struct bhi_content_users {
    struct bhi_content_group *groups;
    uint32_t count, capacity;
};

struct bhi_content {
    struct bhi_content_users writers;
    struct bhi_content_users readers; /* none of them counts */
    uint64_t visit; /* id of the submission that is being built, for its index in uses */
    uint32_t visit_index;
};

void bhi_content_fini(struct bhi_content *content);
/* Room for one more writer and reader of |stream|, so that bhi_content_used cannot fail. */
bool bhi_content_reserve(struct bhi_content *content, const struct bhi_core_stream *stream);
/* The submission behind |event|, of |stream|, uses it from now on. */
void bhi_content_used(struct bhi_content *content, const struct bhi_core_stream *stream,
                      struct bh_event *event, bool reads, bool writes, bool overwrites);
/* What a host access has to wait for: a pending event, not referenced, or NULL. One that only
 * reads waits for those that decide the content. */
struct bh_event *bhi_content_obstacle(struct bhi_content *content, bool host_writes);
/* The host has overwritten all of it, or is going to: it is CLEAN. No obstacle may be left. */
void bhi_content_clean(struct bhi_content *content);
/* The poisoned event that the content carries, the one with the earliest origin, or NULL. Nothing
 * that decides it may be pending. */
struct bh_event *bhi_content_poison(const struct bhi_content *content);

#endif
