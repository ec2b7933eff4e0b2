/* Watches one worker: its doorbell, its side channel, and what no event reports: deadlines of what
 * it runs, misconduct, idleness. Reactor thread.
 *
 * The doorbell is an eventfd with which a worker asks the reactor to look at its progress. The
 * worker shares the open file with its flags and its counter: it may clear O_NONBLOCK, and read the
 * counter. So the supervisor never reads it, and makes no call that could block because of its
 * flags (T4). Epoll reports each ring once (edge-triggered), and the counter has room for 2^64
 * rings. A worker that rings without cause is ignored for a while, then killed (conduct.h).
 *
 * Through its side channel a worker on a GPU hands out the memory that it makes. A worker that was
 * taken over can hand out anything, at any time: what nobody has asked for is noticed at once, and
 * what waits there when the worker has ended is closed (decision 2). Other workers cannot send
 * anything there. */
#ifndef BHI_SUPERVISOR_REACTOR_WATCH_H
#define BHI_SUPERVISOR_REACTOR_WATCH_H

#include "supervisor/worker/worker_proc.h"

/* Listens to the doorbell. 0 or -errno. */
int bhi_watch_doorbell(struct bhi_worker *worker);
/* epoll has reported the doorbell: takes in what the worker has completed. No lock. */
void bhi_watch_rung(struct bhi_worker *worker);
/* From now on epoll reports what comes, and the end. Once more does nothing. No lock. */
void bhi_watch_side_channel(struct bhi_worker *worker);
/* epoll has reported it. Returns true if the worker has hung up. No lock. */
bool bhi_watch_side_channel_event(struct bhi_worker *worker);
/* The worker's process has ended: takes its last answers, and closes the channel. No lock. */
void bhi_watch_side_channel_end(struct bhi_worker *worker);

/* Does what is due. |at_conduct|: looks at how much it uses the processor, too. Returns when to look
 * again; BH_FOREVER: no need. Lock held. */
uint64_t bhi_watch_look(struct bhi_worker *worker, bool at_conduct, uint64_t now_ns);

#endif
