/* The content of a buffer: which submissions write and read it now.
 *
 * The writers that count decide the state (B5): PENDING while one of them is pending, POISONED if
 * one of them is poisoned, CLEAN otherwise. A writer that overwrites the whole buffer, or that has
 * read the earlier content, replaces the writers before it. These stay in the list until they end,
 * because the later writer may be cancelled or poisoned early, and neither a new submission nor the
 * host may touch the buffer while they still write.
 *
 * Users are kept by stream, in order. The lane orders a submission after the users of its own
 * stream, so it skips them, however many there are.
 */
#ifndef BHI_CORE_CONTENT_H
#define BHI_CORE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

struct bh_event;
struct bhi_core_stream;

struct bhi_content_group {
    const struct bhi_core_stream *stream; /* never dereferenced: it may be gone */
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
    struct bhi_content_users readers; /* readers never count */
    uint64_t replaced; /* id of the newest event that overwrites all of it; 0: none */
    uint64_t visit;    /* id of the submission that is being built, for its index in uses */
    uint32_t visit_index;
};

void bhi_content_fini(struct bhi_content *content);
/* Makes room for one more writer and reader of |stream|, so that bhi_content_used cannot fail. */
bool bhi_content_reserve(struct bhi_content *content, const struct bhi_core_stream *stream);
/* The submission of |event|, on |stream|, uses the buffer from now on. */
void bhi_content_used(struct bhi_content *content, const struct bhi_core_stream *stream,
                      struct bh_event *event, bool reads, bool writes, bool overwrites);
/* Returns a pending event that a host access must wait for, not referenced, or NULL. An access that
 * only reads waits only for the writers that count. */
struct bh_event *bhi_content_obstacle(struct bhi_content *content, bool host_writes);
/* The host has overwritten the whole buffer, or will: the content is CLEAN. There must be no
 * obstacle. */
void bhi_content_clean(struct bhi_content *content);
/* |event|, on |stream|, is about to be poisoned because the content is not there: it poisons the
 * content, although it does not write it, unless something that was queued behind it overwrites all
 * of it (B5). Returns false if out of memory. */
bool bhi_content_lost(struct bhi_content *content, const struct bhi_core_stream *stream,
                      struct bh_event *event);
/* Returns the poisoned event of the content with the earliest origin, or NULL. No writer that
 * counts may be pending. */
struct bh_event *bhi_content_poison(const struct bhi_content *content);

#endif
