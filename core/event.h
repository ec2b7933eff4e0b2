/* Events.
 *
 *   PENDING ──▶ READY
 *      └──────▶ POISONED        both final (E1); the verdict is complete before the state says so
 */
#ifndef BHI_CORE_EVENT_H
#define BHI_CORE_EVENT_H

#include "base/list.h"
#include "core/handle.h"
#include <bulkhead/bulkhead.h>
#include <stdatomic.h>

struct bhi_core;
struct bhi_submission;

struct bh_event {
    _Atomic uint32_t refs;
    /* Futex word, written under the lock. The two low bits are the bh_event_state, which leaves
     * PENDING once. The bits above count, while PENDING, how often the submission went into a lane
     * or came back out of a dead one: then a sleeper must look again which worker to watch. */
    _Atomic uint32_t word;
    uint64_t id; /* in the order of submission */
    struct bhi_core *core;
    struct bhi_submission *submission; /* lock; NULL once ended */
    struct bhi_list dependents;        /* lock; bhi_edge.link, empty once ended */
    struct bhi_list observers;         /* lock; bhi_observer.link, empty once they are notified */
    uint64_t visit; /* lock; id of the newest submission that depends on it, for its edge's index */
    uint32_t visit_index;
    bool library;         /* the library's own, which no caller sees: not a hop */
    bool copy_failed;     /* the poison began with a copy of the library's, and reached no other */
    bool inherited;       /* another event has doomed it */
    uint16_t words;       /* where in the verdict's message those of its origin begin */
    uint64_t content_of;  /* of a copy: id of the event that wrote the content; 0: no caller's */
    uint64_t origin_tick; /* when the origin of the poison ended, in bhi_core.ticks (E7) */
    struct bh_verdict verdict; /* immutable once the state is not PENDING */

    /* Used by the supervisor only. */
    struct bhi_handle handle;     /* the caller's references; together they hold one of refs */
    bh_context *context;          /* referenced */
    _Atomic uint32_t sleepers;    /* threads that sleep on word, or are about to */
    struct bhi_list pending_link; /* lock; context->pending, until it ends */
};

#define BHI_EVENT_STATE_MASK 3u
#define BHI_EVENT_TURN       4u

static inline bh_event_state bhi_event_state(const struct bh_event *event) {
    return (bh_event_state)(atomic_load_explicit(&event->word, memory_order_acquire) &
                            BHI_EVENT_STATE_MASK);
}

/* Makes the event PENDING, with one reference. The caller sets |id| later. */
void bhi_event_init(struct bh_event *event, struct bhi_core *core);
static inline void bhi_event_ref(struct bh_event *event) {
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}
void bhi_event_unref(struct bh_event *event); /* NULL is fine */
/* Returns true if the event is POISONED, or certain to be; its verdict then has status and origin.
 * Lock held. */
bool bhi_event_doomed(const struct bh_event *event);

/* Observers: code that is notified of an event's end without sleeping on the event. An observer
 * belongs to its maker (a completion queue, a thread that waits for several events). It is in the
 * event's list until the event ends or the observer is withdrawn. A pending event is kept alive by its
 * submission, so an observer holds no reference. */
struct bhi_observer {
    struct bhi_list link; /* event->observers */
    /* The event has ended, and its state is visible to all threads. Called once, after the observer
     * has left the list, with the lock held: only bookkeeping is allowed. It may free the observer.
     */
    void (*ended)(struct bhi_observer *observer);
};

/* Notifies |observer| when |event| ends. The end is noticed even if no thread watches the worker,
 * in whichever lane the submission will be. Returns false if the event has ended already; then
 * nobody is notified. */
bool bhi_observer_join(struct bhi_observer *observer, struct bh_event *event);
/* Does nothing if the observer was notified already, or was never in a list. */
void bhi_observer_withdraw(struct bhi_observer *observer);
/* |event| was published: notifies all its observers in the order in which they joined. */
void bhi_observers_tell(struct bh_event *event);

#endif
