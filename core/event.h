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
    /* Futex word, written under the lock: bh_event_state in the two low bits, which leave PENDING
     * once; above them, while PENDING, a count of the turns that its submission has taken (into a
     * lane, out of a dead one): a sleeper has to look again whom to follow. */
    _Atomic uint32_t word;
    uint64_t id; /* in the order of submission */
    struct bhi_core *core;
    struct bhi_submission *submission; /* lock; NULL once ended */
    struct bhi_list dependents;        /* lock; bhi_edge.link, empty once ended */
    struct bhi_list observers;         /* lock; bhi_observer.link, empty once they are told */
    uint64_t visit; /* lock; id of the last submission that was made to depend on it */
    uint32_t visit_index;
    uint64_t origin_tick;      /* when the origin of the poison ended, in bhi_core.ticks (E7) */
    struct bh_verdict verdict; /* immutable once the state is not PENDING */

    /* The supervisor's. */
    struct bhi_handle handle;     /* the caller's references: one of refs while there are any */
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

/* A fresh one, pending, with one reference; |id| is given later. */
void bhi_event_init(struct bh_event *event, struct bhi_core *core);
static inline void bhi_event_ref(struct bh_event *event) {
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}
void bhi_event_unref(struct bh_event *event); /* NULL is fine */
/* It is POISONED, or certain to be: its verdict's origin and status are there. Lock held. */
bool bhi_event_doomed(const struct bh_event *event);

#endif
