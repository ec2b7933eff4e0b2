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
    _Atomic uint32_t state;    /* bh_event_state; futex word; leaves PENDING once, under the lock */
    _Atomic uint32_t sleepers; /* threads that sleep on state, or are about to */
    uint64_t id;
    bh_context *context;               /* referenced */
    struct bhi_submission *submission; /* lock; NULL once ended */
    struct bhi_list dependents;        /* lock; bhi_edge.link, empty once ended */
    uint64_t origin_ns;                /* when the origin of the poison ended (E7) */
    struct bh_verdict verdict;         /* immutable once the state is not PENDING */
};

struct bh_event *bhi_event_create(bh_context *context); /* NULL: out of memory; one reference */
/* Publishes the verdict that has been written to event->verdict and wakes everybody. Lock held.
 * Exactly once for each event. */
void bhi_event_publish(struct bh_event *event);

static inline bh_event_state bhi_event_state(const struct bh_event *event) {
    return (bh_event_state)atomic_load_explicit(&event->state, memory_order_acquire);
}

/* Waits until |event| has ended. BH_OK or BH_TIMEOUT: what became of it is not looked at. */
bh_status bhi_event_await(struct bh_event *event, uint64_t deadline_ns);

#endif
