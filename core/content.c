#include "content.h"
#include "check.h"
#include "event.h"

#include <stdlib.h>

/* How many poisoned writers of parts a buffer remembers: one is enough to poison its content, the
 * others are only counted (E7). */
#define MAX_POISONED 8

static void fini(struct bhi_content_users *list) {
    for (uint32_t i = 0; i < list->count; i++)
        bhi_event_unref(list->users[i].event);
    free(list->users);
    *list = (struct bhi_content_users){0};
}

void bhi_content_fini(struct bhi_content *content) {
    fini(&content->writers);
    fini(&content->readers);
}

/* Drops the users that no longer matter. */
static void prune(struct bhi_content_users *list) {
    uint32_t kept = 0, poisoned = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        struct bhi_content_user user = list->users[i];
        bh_event_state state = bhi_event_state(user.event);
        bool keep = state == BH_EVENT_PENDING;
        if (state == BH_EVENT_POISONED && user.counts)
            keep = poisoned++ < MAX_POISONED;
        if (keep)
            list->users[kept++] = user;
        else
            bhi_event_unref(user.event);
    }
    list->count = kept;
}

static bool reserve(struct bhi_content_users *list) {
    if (list->count < list->capacity)
        return true;
    prune(list);
    /* At least half of it free, so that pruning is not done each time. */
    if (2 * list->count < list->capacity)
        return true;
    uint32_t capacity = list->capacity ? 2 * list->capacity : 4;
    struct bhi_content_user *users = realloc(list->users, capacity * sizeof *users);
    if (!users)
        return false;
    list->users = users;
    list->capacity = capacity;
    return true;
}

bool bhi_content_reserve(struct bhi_content *content) {
    return reserve(&content->writers) && reserve(&content->readers);
}

/* From now on what they have written, or will, does not show. */
static void supersede(struct bhi_content_users *list) {
    for (uint32_t i = 0; i < list->count; i++)
        list->users[i].counts = false;
    prune(list);
}

static void push(struct bhi_content_users *list, struct bh_event *event, bool counts) {
    BHI_CHECK(list->count < list->capacity);
    bhi_event_ref(event);
    list->users[list->count++] = (struct bhi_content_user){event, counts};
}

void bhi_content_used(struct bhi_content *content, struct bh_event *event, bool reads, bool writes,
                      bool overwrites) {
    if (writes) {
        if (overwrites || reads)
            supersede(&content->writers);
        push(&content->writers, event, true);
    } else if (reads) {
        push(&content->readers, event, false);
    }
}

static struct bh_event *first_pending(const struct bhi_content_users *list, bool all) {
    for (uint32_t i = 0; i < list->count; i++)
        if ((all || list->users[i].counts) &&
            bhi_event_state(list->users[i].event) == BH_EVENT_PENDING)
            return list->users[i].event;
    return NULL;
}

struct bh_event *bhi_content_obstacle(struct bhi_content *content, bool host_writes) {
    struct bh_event *pending = first_pending(&content->writers, host_writes);
    if (!pending && host_writes)
        pending = first_pending(&content->readers, true);
    return pending;
}

void bhi_content_clean(struct bhi_content *content) {
    supersede(&content->writers);
}

struct bh_event *bhi_content_poison(const struct bhi_content *content) {
    struct bh_event *first = NULL;
    for (uint32_t i = 0; i < content->writers.count; i++) {
        const struct bhi_content_user *user = &content->writers.users[i];
        if (user->counts && bhi_event_state(user->event) == BH_EVENT_POISONED &&
            (!first || user->event->origin_tick < first->origin_tick))
            first = user->event;
    }
    return first;
}
