/* Runs a workload with known answers on a supervisor in this process, breaks things meanwhile, and
 * writes down what happened. It judges nothing: that is the checker's. */
#ifndef BHI_CHAOS_ENGINE_ENGINE_H
#define BHI_CHAOS_ENGINE_ENGINE_H

#include "chaos/engine/options.h"

enum bhi_engine_result {
    BHI_ENGINE_RAN,         /* whatever came out */
    BHI_ENGINE_INTERRUPTED, /* by a signal; the history has what there was */
    BHI_ENGINE_ENVIRON,     /* it could not begin: no device, no worker */
};

bool bhi_engine_can_replay(const struct bhi_history *history, struct bhi_complaint *complaint);
/* Blocks. |history| has been initialised; its header is filled in here. */
enum bhi_engine_result bhi_engine_run(const struct bhi_engine_options *options,
                                      struct bhi_history *history, struct bhi_complaint *complaint);

#endif
