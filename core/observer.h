/* Observers: code that is notified of an event's end without sleeping on the event.
 *
 * An observer belongs to its maker (a completion queue, a thread that waits for several events). It
 * is in the event's list until the event ends or the observer is withdrawn. A pending event is kept
 * alive by its submission, so an observer holds no reference.
 */
#ifndef BHI_CORE_OBSERVER_H
#define BHI_CORE_OBSERVER_H

#include "base/list.h"
#include <stdbool.h>

struct bh_event;

struct bhi_observer {
    struct bhi_list link; /* event->observers */
    /* The event has ended, and its state is visible to all threads. Called once, after the observer
     * has left the list, with the lock held: only bookkeeping is allowed. It may free the observer.
     */
    void (*ended)(struct bhi_observer *observer);
};

/* Notifies |observer| when |event| ends. The end is noticed even if no thread watches the worker,
 * in whichever lane the submission will be. Returns false if the event has ended already; then
 * nobody is notified. */
bool bhi_observer_join(struct bhi_observer *observer, struct bh_event *event);
/* Does nothing if the observer was notified already, or was never in a list. */
void bhi_observer_withdraw(struct bhi_observer *observer);
/* |event| was published: notifies all its observers in the order in which they joined. */
void bhi_observers_tell(struct bh_event *event);

#endif
