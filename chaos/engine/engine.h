/* Runs a workload with known answers on a supervisor in this process, injects faults meanwhile, and
 * writes down what happened. It judges nothing: the checker does that. */
#ifndef BHI_CHAOS_ENGINE_ENGINE_H
#define BHI_CHAOS_ENGINE_ENGINE_H

#include "chaos/engine/options.h"

enum bhi_engine_result {
    BHI_ENGINE_RAN,         /* to the end, whatever the results are */
    BHI_ENGINE_INTERRUPTED, /* by a signal; the history is complete up to then */
    BHI_ENGINE_ENVIRON,     /* it could not begin, for example without a device or worker */
};

bool bhi_engine_can_replay(const struct bhi_history *history, struct bhi_complaint *complaint);
/* Blocks. The caller has initialised |history|; its header is filled in here. */
enum bhi_engine_result bhi_engine_run(const struct bhi_engine_options *options,
                                      struct bhi_history *history, struct bhi_complaint *complaint);

#endif
