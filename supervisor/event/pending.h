/* The context-wide wait: for the pending events of all streams, and for the failures of released
 * streams. */
#ifndef BHI_SUPERVISOR_EVENT_PENDING_H
#define BHI_SUPERVISOR_EVENT_PENDING_H

#include <bulkhead/bulkhead.h>

/* Adds |event|, which has its id and is the newest of the context, to that wait until it is
 * published. Lock held. */
void bhi_pending_add(struct bh_event *event);
/* Drops the failure of released streams, because the context closes. */
void bhi_pending_forget(bh_context *context);

#endif
