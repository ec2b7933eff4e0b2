/* Waits for several events at once. Only these events wake the waiting thread, and only once. */
#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/context/context.h"
#include "supervisor/event/event.h"

#include <stdlib.h>

#define FEW   16
#define BATCH 256 /* events that are checked before the lock is released for a moment */

struct waiter {
    bool all;
    _Atomic size_t
        left; /* |all|: the number of events that have not ended, plus one while the list is made */
    _Atomic uint32_t done; /* futex word */
};

struct node {
    struct bhi_observer observer;
    struct waiter *waiter;
};

/* Called under the context's lock. The waiting thread takes this lock once more before it returns
 * (withdraw), so |waiter|, which is on its stack, still exists here. */
static void node_ended(struct bhi_observer *observer) {
    struct waiter *waiter = BHI_CONTAINER(observer, struct node, observer)->waiter;
    if (waiter->all && atomic_fetch_sub(&waiter->left, 1) != 1) {
        return;
    }
    if (atomic_exchange(&waiter->done, 1) == 0) {
        bhi_futex_wake(&waiter->done, false, 1);
    }
}

/* Locks |wanted|, the context of event |i|. If |held| is another context, or was locked for BATCH
 * events, unlocks it first. */
static bh_context *relock(bh_context *held, bh_context *wanted, size_t i) {
    if (held == wanted && i % BATCH) {
        return held;
    }
    if (held) {
        bhi_context_pump_unlock(held);
    }
    bhi_context_lock(wanted);
    return wanted;
}

static void observe(struct waiter *waiter, bh_event *const *events, struct node *nodes,
                    size_t count) {
    bh_context *held = NULL;
    for (size_t i = 0; i < count; i++) {
        held = relock(held, events[i]->context, i);
        nodes[i] = (struct node){.observer.ended = node_ended, .waiter = waiter};
        atomic_fetch_add(&waiter->left, 1);
        if (!bhi_event_observe(events[i], &nodes[i].observer)) {
            node_ended(&nodes[i].observer);
        }
    }
    bhi_context_pump_unlock(held);
    if (waiter->all && atomic_fetch_sub(&waiter->left, 1) == 1) {
        atomic_store(&waiter->done, 1);
    }
}

/* Ends the observation. |look|: first reads results that came just before the deadline. */
static void withdraw(bh_event *const *events, struct node *nodes, size_t count, bool look) {
    bh_context *held = NULL;
    for (size_t i = 0; i < count; i++) {
        held = relock(held, events[i]->context, i);
        if (look) {
            bhi_event_look(events[i]);
        }
        bhi_observer_withdraw(&nodes[i].observer);
    }
    bhi_context_pump_unlock(held);
}

/* Waits until one (or |all|) of the events have ended. Returns BH_OK, BH_TIMEOUT, BH_IN_CALLBACK or
 * BH_NO_MEMORY. */
static bh_status await(bh_event *const *events, size_t count, bool all, uint64_t deadline_ns) {
    if (count == 1) {
        return bhi_event_await(events[0], deadline_ns);
    }
    struct node few[FEW];
    struct node *nodes = count <= FEW ? few : calloc(count, sizeof *nodes);
    if (!nodes) {
        return BH_NO_MEMORY;
    }
    struct waiter waiter = {.all = all, .left = 1, .done = 0};
    observe(&waiter, events, nodes, count);
    bh_status status = BH_OK;
    while (status == BH_OK && atomic_load(&waiter.done) == 0) {
        if (bhi_now_ns() >= deadline_ns) {
            status = BH_TIMEOUT;
        } else if (bhi_in_callback()) {
            status = BH_IN_CALLBACK;
        } else {
            bhi_futex_wait(&waiter.done, 0, false, deadline_ns);
        }
    }
    withdraw(events, nodes, count, status == BH_TIMEOUT);
    if (atomic_load(&waiter.done)) {
        status = BH_OK;
    }
    if (nodes != few) {
        free(nodes);
    }
    return status;
}

static bool any_is_dead(bh_event *const *events, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!BHI_LIVE(events[i])) {
            return true;
        }
    }
    return false;
}

/* Returns the index of the first event that is pending, or is not if !|pending|; |count|: none. */
static size_t first(bh_event *const *events, size_t count, bool pending) {
    size_t i = 0;
    while (i < count && (bhi_event_state(events[i]) == BH_EVENT_PENDING) != pending) {
        i++;
    }
    return i;
}

/* Returns true if one of the pending events belongs to the parent process. */
static bool forked(bh_event *const *events, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bhi_event_state(events[i]) == BH_EVENT_PENDING &&
            bhi_context_forked(events[i]->context)) {
            return true;
        }
    }
    return false;
}

BH_API bh_status bh_event_wait_any(bh_event *const *events, size_t count, uint64_t timeout_ns,
                                   size_t *out_index) {
    if (!events || !count || !out_index || any_is_dead(events, count)) {
        return BH_INVALID_ARGUMENT;
    }
    *out_index = first(events, count, false);
    if (*out_index < count) {
        return BH_OK;
    }
    if (forked(events, count)) {
        return BH_FORKED;
    }
    BHI_TRY(await(events, count, false, bhi_deadline_ns(timeout_ns)));
    *out_index = first(events, count, false);
    return BH_OK;
}

/* Used if there is no memory for observers. Waits for the events one after the other, the last in
 * the array first: it usually ends last, and then the others need no sleep. */
static bh_status await_in_turn(bh_event *const *events, size_t count, uint64_t deadline_ns) {
    bh_status status = BH_OK;
    for (size_t i = count; i > 0 && status == BH_OK; i--) {
        status = bhi_event_await(events[i - 1], deadline_ns);
    }
    return status;
}

BH_API bh_status bh_event_wait_all(bh_event *const *events, size_t count, uint64_t timeout_ns,
                                   size_t *out_index) {
    if (out_index) {
        *out_index = count;
    }
    if ((count && !events) || any_is_dead(events, count)) {
        return BH_INVALID_ARGUMENT;
    }
    if (first(events, count, true) < count) {
        if (forked(events, count)) {
            return BH_FORKED;
        }
        uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
        bh_status status = await(events, count, true, deadline_ns);
        if (status == BH_NO_MEMORY) {
            status = await_in_turn(events, count, deadline_ns);
        }
        if (status != BH_OK) {
            if (out_index) {
                *out_index = first(events, count, true);
            }
            return status;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (bhi_event_state(events[i]) == BH_EVENT_POISONED) {
            if (out_index) {
                *out_index = i;
            }
            return events[i]->verdict.status;
        }
    }
    return BH_OK;
}
