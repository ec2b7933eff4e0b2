/* Checks one worker for what no event reports: misconduct, idleness, closed sockets. Reactor
 * thread, lock held. A returned time says when to check again; BH_FOREVER: no need. */
#ifndef BHI_SUPERVISOR_REACTOR_LOOK_H
#define BHI_SUPERVISOR_REACTOR_LOOK_H

#include "supervisor/worker/worker_proc.h"

/* Kills a worker that uses the processor while nothing is in flight (T5). */
void bhi_look_at_conduct(struct bhi_worker *worker, uint64_t now_ns);
/* Ends a worker whose stream has had no work for a while. No event reports that its last work has
 * ended, so a worker that works is checked as often. */
uint64_t bhi_look_at_idle(struct bhi_worker *worker, uint64_t now_ns);
/* Kills a worker that has closed its sockets and goes on. */
uint64_t bhi_look_at_hung_up(struct bhi_worker *worker, uint64_t now_ns);

#endif
