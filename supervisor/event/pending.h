/* The context-wide wait: what is pending in a context, whichever stream it was submitted to, and
 * the failures of streams that are gone.
 */
#ifndef BHI_SUPERVISOR_EVENT_PENDING_H
#define BHI_SUPERVISOR_EVENT_PENDING_H

#include <bulkhead/bulkhead.h>

/* |event| has its id, and is the newest of the context: from now on that wait waits for it, until
 * it is published. Lock held. */
void bhi_pending_add(struct bh_event *event);
/* Drops what was inherited: the context closes. */
void bhi_pending_forget(bh_context *context);

#endif
