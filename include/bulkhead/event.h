/* Events: whether and how submissions have ended. */
#ifndef BULKHEAD_EVENT_H
#define BULKHEAD_EVENT_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <bulkhead/verdict.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* State of an event: PENDING, then one of the others for ever (E1). */
typedef enum bh_event_state {
    BH_EVENT_PENDING,  /* the submission has not ended */
    BH_EVENT_READY,    /* it ran to its end */
    BH_EVENT_POISONED, /* it failed, or what it depends on failed: see bh_event_verdict */
} bh_event_state;

/* Waits until |event| is READY or POISONED. If the worker dies while it runs the submission, the
 * wait ends within a few milliseconds (E9). Blocks. Returns BH_OK, BH_TIMEOUT (nothing changed), or
 * the verdict's code: the same answer every time and to every thread (E2). */
BH_API BH_MUST_USE bh_status bh_event_wait(bh_event *event, uint64_t timeout_ns);
/* Waits until one of |events| has ended. *out_index is the first in the array that has ended. An
 * event may appear several times, and events may belong to several contexts. Blocks. Takes no
 * reference. Returns BH_OK however it ended (bh_event_wait(…, 0) says how), BH_TIMEOUT (nothing
 * changed; *out_index is |count|), BH_NO_MEMORY, or BH_INVALID_ARGUMENT (|count| is 0, or an event
 * is NULL or released). */
BH_API BH_MUST_USE bh_status bh_event_wait_any(bh_event *const *events, size_t count,
                                               uint64_t timeout_ns, size_t *out_index);
/* Waits until all |events| have ended, READY or POISONED. An event may appear several times, and
 * events may belong to several contexts. |out_index| may be NULL. Blocks. Takes no reference.
 * Returns
 *   BH_OK                all are READY, or |count| is 0; *out_index is |count|
 *   a verdict's code     all have ended; *out_index is the first in the array that is POISONED
 *   BH_TIMEOUT           nothing changed; *out_index is the first in the array that is pending
 *   BH_INVALID_ARGUMENT  an event is NULL or released; *out_index is |count| */
BH_API BH_MUST_USE bh_status bh_event_wait_all(bh_event *const *events, size_t count,
                                               uint64_t timeout_ns, size_t *out_index);
/* Returns the state now. NULL and a released event are POISONED, so that no loop waits for them. */
BH_API bh_event_state bh_event_query(bh_event *event);
/* Fills in *out_verdict, also of a READY event. Returns BH_OK, or BH_PENDING. */
BH_API BH_MUST_USE bh_status bh_event_verdict(bh_event *event, bh_verdict *out_verdict);
/* Cancels a submission. A queued one never runs (executed no). A running one ends as at its
 * deadline (executed unknown): it stops cooperatively, or its worker is killed. The call does not
 * wait. The event ends CANCELLED, unless the submission ends in another way first. Returns BH_OK,
 * also for an event that has ended, or BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_event_cancel(bh_event *event);
/* Returns the event's id, unique in its context; 0 for NULL and for a released event. */
BH_API uint64_t bh_event_id(const bh_event *event);
/* Adds a reference. */
BH_API void bh_event_retain(bh_event *event);
/* Drops a reference. The submission goes on. */
BH_API void bh_event_release(bh_event *event);

#ifdef __cplusplus
}
#endif

#endif
