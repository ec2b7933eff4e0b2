/* The pump: releases what a change has made ready. Call it before the lock is dropped. */
#ifndef BHI_CORE_PUMP_H
#define BHI_CORE_PUMP_H

#include "core/core.h"

/* Moves submissions from queues into lanes. Call it after all other functions, before the lock is
 * dropped. */
void bhi_core_pump(struct bhi_core *core);

#endif
