/* Who is told of an event's end without sleeping on it: the list is the core's (core/observer.h),
 * here is what observing takes besides. */
#ifndef BHI_SUPERVISOR_EVENT_OBSERVER_H
#define BHI_SUPERVISOR_EVENT_OBSERVER_H

#include "core/observer.h"
#include <bulkhead/bulkhead.h>

/* -- lock held -------------------------------------------------------------------------------- */

/* Takes in what the event's worker has completed, or while its submission is queued, the worker of
 * what it waits for: so a queued one is released without the reactor. Not while a submission ends.
 */
void bhi_event_look(struct bh_event *event);
/* Looks, then has |observer| told of the end of |event|: see bhi_observer_join. */
bool bhi_event_observe(struct bh_event *event, struct bhi_observer *observer);

#endif
