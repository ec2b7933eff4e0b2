/* Events.
 *
 *   PENDING ──▶ READY
 *      └──────▶ POISONED        both final (E1); the verdict is complete before the state says so
 */
#ifndef BHI_EVENT_H
#define BHI_EVENT_H

#include "list.h"
#include <bulkhead/bulkhead.h>
#include <stdatomic.h>

struct bhi_submission;

struct bh_event {
    _Atomic uint32_t refs;
    /* Futex word, written under the lock: bh_event_state in the two low bits, which leave PENDING
     * once; above them, while PENDING, a count of the turns that its submission has taken (into a
     * lane, out of a dead one): a sleeper has to look again whom to follow. */
    _Atomic uint32_t word;
    _Atomic uint32_t sleepers; /* threads that sleep on word, or are about to */
    uint64_t id;
    bh_context *context;               /* referenced */
    struct bhi_submission *submission; /* lock; NULL once ended */
    struct bhi_list dependents;        /* lock; bhi_edge.link, empty once ended */
    struct bhi_list observers;         /* lock; bhi_observer.link, empty once ended */
    struct bhi_list pending_link;      /* lock; context->pending, until it ends */
    uint64_t visit; /* lock; id of the last submission that was made to depend on it */
    uint32_t visit_index;
    uint64_t origin_ns;        /* when the origin of the poison ended (E7) */
    struct bh_verdict verdict; /* immutable once the state is not PENDING */
};

struct bh_event *bhi_event_create(bh_context *context); /* NULL: out of memory; one reference */
/* Publishes the verdict that has been written to event->verdict and wakes everybody. Lock held.
 * Exactly once for each event. */
void bhi_event_publish(struct bh_event *event);

#define BHI_EVENT_STATE_MASK 3u
#define BHI_EVENT_TURN       4u

static inline bh_event_state bhi_event_state(const struct bh_event *event) {
    return (bh_event_state)(atomic_load_explicit(&event->word, memory_order_acquire) &
                            BHI_EVENT_STATE_MASK);
}

/* Its submission has been released or put back: sleepers look again. Lock held. */
void bhi_event_turn(struct bh_event *event);

/* Waits until |event| has ended. BH_OK, BH_TIMEOUT, or BH_IN_CALLBACK where it would have to sleep:
 * what became of it is not looked at. */
bh_status bhi_event_await(struct bh_event *event, uint64_t deadline_ns);

#endif
