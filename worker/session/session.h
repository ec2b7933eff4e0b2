/* The session: what a worker does after it is isolated. It owns the backend, reads the lane,
 * handles control messages and publishes progress, in one thread.
 *
 *   worker.c:  fork → sandbox layers → channel, hello → filter A
 *              → bhi_session_start (device, warm-up) → filter B → bhi_session_run → exit
 */
#ifndef BHI_WORKER_SESSION_SESSION_H
#define BHI_WORKER_SESSION_SESSION_H

#include "worker/exit.h"
#include "worker/session/config.h"
#include <stdint.h>

struct bhi_session;

/* Creates the device (or the loader, or the compiler), sends the `device` messages, and warms up.
 * On failure returns NULL; the error of the step is in progress (bhi_progress_step_failed), and all
 * available device messages were sent. */
struct bhi_session *bhi_session_start(const struct bhi_session_config *config);
/* Sends `ready` with |layers|, then serves until the supervisor has gone or breaks the protocol.
 * Returns an exit code. If the device is lost, publishes the results first, then returns
 * BHI_EXIT_DEVICE_LOST. */
int bhi_session_run(struct bhi_session *session, uint64_t layers);
void bhi_session_destroy(struct bhi_session *session);

#endif
