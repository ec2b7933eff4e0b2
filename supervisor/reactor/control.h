/* The control channels: handles the messages of workers, and sends what waits in their outboxes.
 * Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_CONTROL_H
#define BHI_SUPERVISOR_REACTOR_CONTROL_H

#include "supervisor/worker/worker_proc.h"

/* Takes in a bounded number of messages; worker->messages_left says whether some are left. */
void bhi_control_receive(struct bhi_worker *worker);
/* The same, when epoll has reported the channel: that should bring a message. */
void bhi_control_woken(struct bhi_worker *worker);
/* Sends what can be sent. True: something is left, try again soon. */
bool bhi_control_send(struct bhi_worker *worker);

/* The worker has said that it is ready and its pidfd is known: checks it and puts it to use. */
void bhi_control_ready(struct bhi_worker *worker);

#endif
