/* Looks at one worker, for what nobody reports: it misbehaves, it idles, it has hung up. Reactor
 * thread, lock held. What returns a time: when to look again, BH_FOREVER: no need. */
#ifndef BHI_SUPERVISOR_REACTOR_LOOK_H
#define BHI_SUPERVISOR_REACTOR_LOOK_H

#include "supervisor/worker/worker_proc.h"

/* Kills one that uses the processor with nothing to do (T5). */
void bhi_look_at_conduct(struct bhi_worker *worker, uint64_t now_ns);
/* Ends one whose stream has had no work for it for a while. Nobody says when the last of its work
 * has ended, so one that works is looked at as often. */
uint64_t bhi_look_at_idle(struct bhi_worker *worker, uint64_t now_ns);
/* Kills one that has closed its sockets and goes on. */
uint64_t bhi_look_at_hung_up(struct bhi_worker *worker, uint64_t now_ns);

#endif
