#include "core/event.h"
#include "core/submission.h"

bool bhi_observer_join(struct bhi_observer *observer, struct bh_event *event) {
    bhi_list_init(&observer->link);
    if (bhi_event_state(event) != BH_EVENT_PENDING) {
        return false;
    }
    bhi_list_append(&event->observers, &observer->link);
    bhi_submission_notify(event->submission);
    return true;
}

void bhi_observer_withdraw(struct bhi_observer *observer) {
    bhi_list_remove(&observer->link);
}

void bhi_observers_tell(struct bh_event *event) {
    while (!bhi_list_empty(&event->observers)) {
        struct bhi_observer *observer =
            BHI_CONTAINER(event->observers.next, struct bhi_observer, link);
        bhi_list_remove(&observer->link);
        observer->ended(observer);
    }
}
