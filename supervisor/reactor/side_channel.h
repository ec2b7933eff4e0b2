/* The side channel of a worker on a GPU, through which it hands out the memory that it makes. A
 * worker that was taken over can hand out anything, at any time: what nobody has asked for is
 * noticed at once, and what waits there when the worker has ended is closed (decision 75). Other
 * workers cannot send anything there. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_SIDE_CHANNEL_H
#define BHI_SUPERVISOR_REACTOR_SIDE_CHANNEL_H

#include "supervisor/worker/worker_proc.h"

/* From now on epoll reports what comes, and the end. Once more does nothing. No lock. */
void bhi_side_channel_watch(struct bhi_worker *worker);
/* epoll has reported it. Returns true if the worker has hung up. No lock. */
bool bhi_side_channel_event(struct bhi_worker *worker);
/* The worker's process has ended: takes its last answers, and closes the channel. No lock. */
void bhi_side_channel_end(struct bhi_worker *worker);

#endif
