/* Completion callbacks: one thread a context, started at the first registration, that runs them in
 * the order in which their events ended, with no lock held.
 */
#ifndef BHI_SUPERVISOR_EVENT_CALLBACK_H
#define BHI_SUPERVISOR_EVENT_CALLBACK_H

#include "base/list.h"
#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdatomic.h>

struct bhi_callbacks {
    pthread_mutex_t start_lock; /* guards thread and started; taken before the context's lock */
    pthread_t thread;
    bool started;
    /* Context lock: */
    struct bhi_list due; /* callbacks of events that have ended, in that order */
    bool stopping;       /* no more will come: the thread ends when none is due */
    bool asleep;         /* the thread sleeps on word, or is about to */
    _Atomic uint32_t word;
};

void bhi_callbacks_init(struct bhi_callbacks *callbacks);
/* Runs all that were registered, then ends the thread. The context is closed (nobody registers any
 * more), and all its events have ended. Blocks. */
void bhi_callbacks_stop(bh_context *context);
void bhi_callbacks_fini(struct bhi_callbacks *callbacks);

#endif
