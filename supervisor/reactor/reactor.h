/* The reactor: the one thread of a context that watches pidfds, doorbells, channels and the clock,
 * and starts and buries processes. It takes the context's lock for short turns. */
#ifndef BHI_SUPERVISOR_REACTOR_REACTOR_H
#define BHI_SUPERVISOR_REACTOR_REACTOR_H

#include "supervisor/context/context.h"

/* Starts the thread, with all signals blocked. 0 or -errno. */
int bhi_reactor_start(bh_context *context);
/* Ends the thread, which kills and buries every process first, and joins it. */
void bhi_reactor_stop(bh_context *context);
void bhi_reactor_free(bh_context *context); /* with the context */

#endif
