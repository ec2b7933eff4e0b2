/* How threads wait for events, and how their end is reported. Their state is in core/event.h. */
#ifndef BHI_SUPERVISOR_EVENT_EVENT_H
#define BHI_SUPERVISOR_EVENT_EVENT_H

#include "core/event.h"

struct bh_event *bhi_event_create(bh_context *context); /* NULL: out of memory; one reference */

/* Waits until |event| is READY or POISONED. Returns BH_OK in both cases, BH_TIMEOUT, or
 * BH_IN_CALLBACK if it would have to sleep. */
bh_status bhi_event_await(struct bh_event *event, uint64_t deadline_ns);

/* Writes the verdict of a poisoned event, with its kernel, into |detail|. Returns its status. */
bh_status bhi_event_report(const struct bh_event *event, bh_detail *detail, const char *call,
                           const char *what);

/* Reads the results of the event's worker or, while its submission is queued, of the worker for
 * which that waits. So a queued submission is released without the reactor. Not while a submission
 * ends. Lock held. */
void bhi_event_look(struct bh_event *event);
/* Calls bhi_event_look, then bhi_observer_join. Lock held. */
bool bhi_event_observe(struct bh_event *event, struct bhi_observer *observer);

enum bhi_host_access {
    BHI_HOST_READ,
    BHI_HOST_WRITE,   /* and read */
    BHI_HOST_DISCARD, /* the content may be poisoned, and is CLEAN afterwards */
    BHI_HOST_REPLACE, /* the content may be poisoned; submissions will overwrite it */
};
/* Host access to a buffer's bytes: waits for the submissions that use the buffer, then says whether
 * the content may be used. Details begin with |what|. No lock. */
bh_status bhi_buffer_acquire(struct bh_buffer *buffer, enum bhi_host_access access,
                             uint64_t deadline_ns, const char *what, bh_detail *detail);

/* The context-wide wait, for the pending events of all streams and the failures of released ones.
 * Adds |event|, which has its id and is the newest of the context, until it is published. Lock held.
 */
void bhi_pending_add(struct bh_event *event);
/* Drops the failure of released streams, because the context closes. */
void bhi_pending_forget(bh_context *context);

/* Core ops. Lock held. */
void bhi_event_turned(struct bh_event *event); /* sleepers look again which worker to watch */
void bhi_event_ended(struct bh_event *event);  /* wakes all that wait */
void bhi_event_free(struct bh_event *event);

#endif
