/* Observes events: reads the worker's results, then joins the event's list (core/observer.h). */
#ifndef BHI_SUPERVISOR_EVENT_OBSERVER_H
#define BHI_SUPERVISOR_EVENT_OBSERVER_H

#include "core/observer.h"
#include <bulkhead/bulkhead.h>

/* -- lock held -------------------------------------------------------------------------------- */

/* Reads the results of the event's worker or, while its submission is queued, of the worker for
 * which that waits. So a queued submission is released without the reactor. Not while a submission
 * ends. */
void bhi_event_look(struct bh_event *event);
/* Calls bhi_event_look, then bhi_observer_join. */
bool bhi_event_observe(struct bh_event *event, struct bhi_observer *observer);

#endif
