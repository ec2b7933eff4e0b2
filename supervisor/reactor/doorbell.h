/* The doorbell of a worker: an eventfd with which it asks the reactor to look at its progress. The
 * worker shares the open file with its flags and its counter: it may clear O_NONBLOCK, and read the
 * counter. So the supervisor never reads it, and makes no call that could block because of its
 * flags (T4). Epoll reports each ring once (edge-triggered), and the counter has room for 2^64
 * rings.
 *
 * A worker that rings without cause is ignored for a while, then killed (conduct.h). Reactor
 * thread. */
#ifndef BHI_SUPERVISOR_REACTOR_DOORBELL_H
#define BHI_SUPERVISOR_REACTOR_DOORBELL_H

#include "supervisor/worker/worker_proc.h"

/* 0 or -errno. */
int bhi_doorbell_watch(struct bhi_worker *worker);
/* epoll has reported it: takes in what the worker has completed. */
void bhi_doorbell_rung(struct bhi_worker *worker);
/* Listens to it again when the time has come. Returns when to look again, BH_FOREVER: no need.
 * Lock held. */
uint64_t bhi_doorbell_look(struct bhi_worker *worker, uint64_t now_ns);

#endif
