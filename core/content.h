/* The content of a buffer: who writes and reads it now.
 *
 * It is decided by the writers that count (B5): PENDING while one of them is, POISONED when one of
 * them is poisoned, CLEAN otherwise. A writer that overwrites the whole, or read what was there
 * before, counts instead of those before it. But they stay in the list until they have ended: it
 * may itself be cancelled or poisoned early, and whoever comes next must not start, nor the host
 * write, while they still write. */
#ifndef BHI_CORE_CONTENT_H
#define BHI_CORE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

struct bh_event;

struct bhi_content_user {
    struct bh_event *event; /* referenced */
    bool counts; /* its end decides the content; otherwise it only has to be waited for */
};

struct bhi_content_users {
    struct bhi_content_user *users;
    uint32_t count, capacity;
};

struct bhi_content {
    struct bhi_content_users writers; /* those that have ended well are pruned */
    struct bhi_content_users readers; /* those that have ended are pruned */
    uint64_t visit; /* id of the submission that is being built, for its index in uses */
    uint32_t visit_index;
};

void bhi_content_fini(struct bhi_content *content);
/* Room for one more writer and reader, so that bhi_content_used cannot fail. */
bool bhi_content_reserve(struct bhi_content *content);
/* The submission behind |event| uses it from now on. */
void bhi_content_used(struct bhi_content *content, struct bh_event *event, bool reads, bool writes,
                      bool overwrites);
/* What a host access has to wait for: a pending event, not referenced, or NULL. One that only
 * reads waits for those that decide the content. */
struct bh_event *bhi_content_obstacle(struct bhi_content *content, bool host_writes);
/* The host has overwritten all of it, or is going to: it is CLEAN. No obstacle may be left. */
void bhi_content_clean(struct bhi_content *content);
/* The poisoned event that the content carries, the one with the earliest origin, or NULL. Nothing
 * that decides it may be pending. */
struct bh_event *bhi_content_poison(const struct bhi_content *content);

#endif
