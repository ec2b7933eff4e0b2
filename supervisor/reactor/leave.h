/* A stream goes on without its dying worker, before the worker's death is confirmed, if nothing
 * that the worker was told to do is under way (decision 59). A GPU's driver takes 40 ms and more to
 * release a dead process. Until the burial the accounts stay as they are: what the worker has been
 * given counts as given to a living worker. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_LEAVE_H
#define BHI_SUPERVISOR_REACTOR_LEAVE_H

#include "supervisor/context/context.h"

/* Takes each worker that is dying, and may leave, from its stream. Returns true if there was one.
 * No lock. */
bool bhi_leave_turn(bh_context *context);

#endif
