/* Observers: who is told of an event's end without sleeping on it.
 *
 * An observer belongs to whoever made it (a descriptor, a callback, a thread that waits for several
 * events) and is in the event's list until the event ends or the observer is withdrawn. A pending
 * event is kept alive by its submission, so an observer holds no reference.
 */
#ifndef BHI_CORE_OBSERVER_H
#define BHI_CORE_OBSERVER_H

#include "base/list.h"
#include <stdbool.h>

struct bh_event;

struct bhi_observer {
    struct bhi_list link; /* event->observers */
    /* The event has ended, and everybody sees it. Called once, after the observer has left the
     * list, with the lock held: bookkeeping only. It may free the observer. */
    void (*ended)(struct bhi_observer *observer);
};

/* Has |observer| told of the end of |event|, and that end noticed though nobody follows its worker,
 * in whichever lane the submission comes to be. False: it has ended already, and nobody is told. */
bool bhi_observer_join(struct bhi_observer *observer, struct bh_event *event);
/* Nothing to do for one that has been told, or was never in a list. */
void bhi_observer_withdraw(struct bhi_observer *observer);
/* |event| has been published: tells all of them, in the order in which they came. */
void bhi_observers_tell(struct bh_event *event);

#endif
