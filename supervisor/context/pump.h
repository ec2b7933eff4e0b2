/* Drops the lock after a change of the core: runs the pump, then frees what was doomed. */
#ifndef BHI_SUPERVISOR_CONTEXT_PUMP_H
#define BHI_SUPERVISOR_CONTEXT_PUMP_H

#include "supervisor/context/context.h"

/* Runs bhi_core_pump, which introduces kernels and buffers to workers, fills their lanes and ends
 * what cannot run. Then calls bhi_context_settle_unlock. */
void bhi_context_pump_unlock(bh_context *context);

#endif
