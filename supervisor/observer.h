/* Observers: who is told of an event's end without sleeping on it.
 *
 * An observer belongs to whoever made it (a descriptor, a callback, a thread that waits for several
 * events) and is in the event's list until the event ends or the observer is withdrawn. A pending
 * event is kept alive by its submission, so an observer holds no reference.
 */
#ifndef BHI_OBSERVER_H
#define BHI_OBSERVER_H

#include "core/list.h"
#include <bulkhead/bulkhead.h>

/* All of it: lock. */
struct bhi_observer {
    struct bhi_list link; /* event->observers */
    /* The event has ended, and everybody sees it. Called once, after the observer has left the
     * list, with the lock held: bookkeeping only. It may free the observer. */
    void (*ended)(struct bhi_observer *observer);
};

/* -- lock held -------------------------------------------------------------------------------- */

/* Takes in what the event's worker has completed, so that the state is as new as can be. Not while
 * a submission ends. */
void bhi_event_look(struct bh_event *event);
/* Has |observer| told of the end of |event|, and the reactor notice it though nobody waits. False:
 * it has ended already, and nobody is told. */
bool bhi_event_observe(struct bh_event *event, struct bhi_observer *observer);
/* Nothing to do for one that has been told, or was never in a list. */
void bhi_observer_withdraw(struct bhi_observer *observer);
/* |event| has been published: tells all of them, in the order in which they came. */
void bhi_event_tell(struct bh_event *event);

#endif
