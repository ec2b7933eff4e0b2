/* How a call that has changed the core drops the lock: the pump runs, then what was doomed is
 * freed. */
#ifndef BHI_SUPERVISOR_CONTEXT_PUMP_H
#define BHI_SUPERVISOR_CONTEXT_PUMP_H

#include "supervisor/context/context.h"

/* Has the core fill the lanes, which introduces to workers what they need and ends what cannot run;
 * then bhi_context_settle_unlock. */
void bhi_context_pump_unlock(bh_context *context);

#endif
