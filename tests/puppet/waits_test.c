/* Which locks a thread takes that waits for several events, and for how long. */
#include "puppet.h"
#include "supervisor/event/event.h"

#include <errno.h>
#include <pthread.h>

static unsigned unlocks;

BHT_WRAP(void, bhi_context_pump_unlock, bh_context *context) {
    __real_bhi_context_pump_unlock(context);
    unlocks++;
}

BHT_WRAP(bool, bhi_event_observe, struct bh_event *event, struct bhi_observer *observer) {
    BHT_EQ(pthread_mutex_trylock(&event->context->lock), EBUSY); /* its own context's is held */
    return __real_bhi_event_observe(event, observer);
}

/* It lets others have the lock now and then, when it comes and when it goes. */
TEST(a_wait_for_many_lets_others_in) {
    enum { MANY = 600, BATCHES = 3 }; /* wait.c: BATCH */
    bh_event *events[MANY];
    size_t index;
    for (int i = 0; i < MANY; i++) {
        events[i] = puppet_submit();
    }
    unlocks = 0;
    BHT_EQ(bh_event_wait_any(events, MANY, 0, &index), BH_TIMEOUT);
    BHT_EQ(unlocks, 2 * BATCHES);
}

/* One lock at a time: two threads could wait for the same two contexts in different orders. */
TEST(a_wait_for_events_of_two_contexts_takes_each_ones_lock) {
    bh_event *events[3] = {puppet_submit(), NULL, puppet_submit()};
    size_t index;
    puppet_beside();
    events[1] = puppet_submit();
    unlocks = 0;
    BHT_EQ(bh_event_wait_any(events, 3, 0, &index), BH_TIMEOUT);
    BHT_EQ(unlocks, 2 * 3);
}
