/* The pump: brings the core to rest after a change. Whoever holds the lock calls it before the
 * lock is dropped. */
#ifndef BHI_CORE_PUMP_H
#define BHI_CORE_PUMP_H

#include "core/core.h"

/* Moves what can go from queues into lanes. To be called after anything else was, before the lock
 * is dropped. */
void bhi_core_pump(struct bhi_core *core);

#endif
