/* The supervisor's core ops: lanes, processes, futexes, memory. */
#ifndef BHI_SUPERVISOR_SUBMIT_CORE_OPS_H
#define BHI_SUPERVISOR_SUBMIT_CORE_OPS_H

#include "core/core.h"

extern const struct bhi_core_ops bhi_supervisor_core_ops;

#endif
