/* The reactor: the one thread of a context that watches pidfds, doorbells, channels and the clock,
 * and starts and buries processes. It takes the context's lock for short turns. */
#ifndef BHI_SUPERVISOR_REACTOR_H
#define BHI_SUPERVISOR_REACTOR_H

#include "supervisor/context/context.h"
#include "supervisor/worker/worker_proc.h"

/* Starts the thread, with all signals blocked. 0 or -errno. */
int bhi_reactor_start(bh_context *context);
/* Ends it: it kills and buries every process first. Joins. */
void bhi_reactor_stop(bh_context *context);
void bhi_reactor_free(bh_context *context); /* with the context */
/* Makes it take a turn. Any thread. */
void bhi_reactor_wake(bh_context *context);
bool bhi_reactor_stopped(const bh_context *context); /* for good; lock held */
/* It shall look at deadlines at |when_ns| at the latest. Lock held; any thread. */
void bhi_reactor_arm(bh_context *context, uint64_t when_ns);
/* Adds a descriptor to its epoll set. Reactor thread. 0 or -errno. */
int bhi_reactor_watch(bh_context *context, int fd, struct bhi_control_source *source);
/* The same, with what else epoll_ctl can do. */
int bhi_reactor_control(bh_context *context, int operation, int fd, uint32_t events,
                        struct bhi_control_source *source);
void bhi_reactor_unwatch(bh_context *context, int fd);
/* The zmq context of this supervisor. Reactor thread. */
void *bhi_reactor_zmq(bh_context *context);

#endif
