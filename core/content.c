#include "core/content.h"
#include "base/array.h"
#include "base/check.h"
#include "core/event.h"

#include <stdlib.h>

/* A buffer remembers at most this many poisoned writers of a part of it for each stream. One is
 * enough to poison the content; the others are only counted (E7). */
#define MAX_POISONED 8

static void fini(struct bhi_content_users *users) {
    for (uint32_t g = 0; g < users->count; g++) {
        const struct bhi_content_group *group = &users->groups[g];
        for (uint32_t i = group->first; i < group->end; i++) {
            bhi_event_unref(group->users[i]);
        }
        free(group->users);
    }
    free(users->groups);
    *users = (struct bhi_content_users){0};
}

void bhi_content_fini(struct bhi_content *content) {
    fini(&content->writers);
    fini(&content->readers);
}

/* -- one group -------------------------------------------------------------------------------- */

static bool matters(const struct bhi_content_group *group, uint32_t i) {
    bh_event_state state = bhi_event_state(group->users[i]);
    return state == BH_EVENT_PENDING || (state == BH_EVENT_POISONED && i >= group->counting);
}

/* Drops the users at the front that no longer matter. A stream's submissions end in order, except
 * those that end early. */
static void trim(struct bhi_content_group *group) {
    while (group->first < group->end && !matters(group, group->first)) {
        bhi_event_unref(group->users[group->first++]);
    }
    if (group->counting < group->first) {
        group->counting = group->first;
    }
}

/* Returns the latest origin_tick that compact() keeps: that of the last of the MAX_POISONED
 * poisoned writers with the earliest origins (E7). */
static uint64_t last_tick(const struct bhi_content_group *group) {
    uint64_t earliest[MAX_POISONED];
    uint32_t count = 0;
    for (uint32_t i = group->counting; i < group->end; i++) {
        if (bhi_event_state(group->users[i]) != BH_EVENT_POISONED) {
            continue;
        }
        uint64_t tick = group->users[i]->origin_tick;
        if (count == MAX_POISONED && tick >= earliest[MAX_POISONED - 1]) {
            continue;
        }
        uint32_t at = count < MAX_POISONED ? count++ : MAX_POISONED - 1;
        for (; at > 0 && earliest[at - 1] > tick; at--) {
            earliest[at] = earliest[at - 1];
        }
        earliest[at] = tick;
    }
    return count ? earliest[count - 1] : 0;
}

/* Drops all users that no longer matter, and moves the others to the front. */
static void compact(struct bhi_content_group *group) {
    uint32_t kept = 0, counting = 0, poisoned = 0;
    uint64_t last = last_tick(group);
    for (uint32_t i = group->first; i < group->end; i++) {
        struct bh_event *event = group->users[i];
        bool keep = matters(group, i);
        if (keep && bhi_event_state(event) == BH_EVENT_POISONED) {
            keep = event->origin_tick <= last && poisoned++ < MAX_POISONED;
        }
        if (!keep) {
            bhi_event_unref(event);
            continue;
        }
        counting += i < group->counting;
        group->users[kept++] = event;
    }
    group->first = 0;
    group->counting = counting;
    group->end = kept;
}

static bool reserve_user(struct bhi_content_group *group) {
    if (group->end < group->capacity) {
        return true;
    }
    compact(group);
    /* Leaves at least half of the room free, so that this does not run each time. */
    if (group->capacity && 2 * group->end <= group->capacity) {
        return true;
    }
    return BHI_ARRAY_RESERVE(group->users, group->capacity, group->capacity + 1);
}

/* -- all of them ------------------------------------------------------------------------------ */

static struct bhi_content_group *group_of(const struct bhi_content_users *users,
                                          const struct bhi_core_stream *stream) {
    for (uint32_t g = 0; g < users->count; g++) {
        if (users->groups[g].stream == stream) {
            return &users->groups[g];
        }
    }
    return NULL;
}

/* An empty group that another stream has left behind, or NULL. */
static struct bhi_content_group *vacant(const struct bhi_content_users *users) {
    for (uint32_t g = 0; g < users->count; g++) {
        trim(&users->groups[g]);
        if (users->groups[g].first == users->groups[g].end) {
            return &users->groups[g];
        }
    }
    return NULL;
}

static bool reserve(struct bhi_content_users *users, const struct bhi_core_stream *stream) {
    struct bhi_content_group *group = group_of(users, stream);
    if (!group && (group = vacant(users))) {
        group->first = group->counting = group->end = 0;
        group->stream = stream;
    }
    if (!group) {
        if (!BHI_ARRAY_RESERVE(users->groups, users->capacity, users->count + 1)) {
            return false;
        }
        group = &users->groups[users->count++];
        *group = (struct bhi_content_group){.stream = stream};
    }
    return reserve_user(group);
}

bool bhi_content_reserve(struct bhi_content *content, const struct bhi_core_stream *stream) {
    return reserve(&content->writers, stream) && reserve(&content->readers, stream);
}

/* These writers do not count any more: a later writer replaces what they write. */
static void supersede(struct bhi_content_users *users) {
    for (uint32_t g = 0; g < users->count; g++) {
        users->groups[g].counting = users->groups[g].end;
        trim(&users->groups[g]);
    }
}

static void push(struct bhi_content_users *users, const struct bhi_core_stream *stream,
                 struct bh_event *event, bool counts) {
    struct bhi_content_group *group = group_of(users, stream);
    BHI_CHECK(group && group->end < group->capacity);
    bhi_event_ref(event);
    group->users[group->end++] = event;
    if (!counts) {
        group->counting = group->end;
    }
}

void bhi_content_used(struct bhi_content *content, const struct bhi_core_stream *stream,
                      struct bh_event *event, bool reads, bool writes, bool overwrites) {
    if (writes) {
        content->replaced = overwrites ? event->id : content->replaced;
        if (overwrites || reads) {
            supersede(&content->writers);
        }
        push(&content->writers, stream, event, true);
    } else if (reads) {
        push(&content->readers, stream, event, false);
    }
}

bool bhi_content_lost(struct bhi_content *content, const struct bhi_core_stream *stream,
                      struct bh_event *event) {
    if (event->id < content->replaced) {
        return true;
    }
    if (!reserve(&content->writers, stream)) {
        return false;
    }
    push(&content->writers, stream, event, true);
    return true;
}

static struct bh_event *first_pending(const struct bhi_content_users *users, bool all) {
    for (uint32_t g = 0; g < users->count; g++) {
        struct bhi_content_group *group = &users->groups[g];
        trim(group);
        for (uint32_t i = all ? group->first : group->counting; i < group->end; i++) {
            if (bhi_event_state(group->users[i]) == BH_EVENT_PENDING) {
                return group->users[i];
            }
        }
    }
    return NULL;
}

struct bh_event *bhi_content_obstacle(struct bhi_content *content, bool host_writes) {
    struct bh_event *pending = first_pending(&content->writers, host_writes);
    if (!pending && host_writes) {
        pending = first_pending(&content->readers, true);
    }
    return pending;
}

void bhi_content_clean(struct bhi_content *content) {
    supersede(&content->writers);
}

struct bh_event *bhi_content_poison(const struct bhi_content *content) {
    struct bh_event *first = NULL;
    for (uint32_t g = 0; g < content->writers.count; g++) {
        const struct bhi_content_group *group = &content->writers.groups[g];
        for (uint32_t i = group->counting; i < group->end; i++) {
            struct bh_event *event = group->users[i];
            if (bhi_event_state(event) == BH_EVENT_POISONED &&
                (!first || event->origin_tick < first->origin_tick)) {
                first = event;
            }
        }
    }
    return first;
}
