/* Looks at the memory of the run's devices while the run has no process: with a context of its own,
 * whose worker is new, and through NVML where there is one. */
#ifndef BHI_CHAOS_ENGINE_LOOK_H
#define BHI_CHAOS_ENGINE_LOOK_H

#include "chaos/history/history.h"

enum { BHI_LOOK_DEVICES = 64 };

struct bhi_look {
    const char *runtime_parent;                /* where contexts make their folders */
    const char *wanted;                        /* bhi_engine_options.device */
    uint64_t start_ns;                         /* of the run: times count from it */
    struct bhi_record first[BHI_LOOK_DEVICES]; /* the first look at each GPU of the run */
    uint32_t count;
};

/* Before the run: names the device in the header, and notes a record of each of the run's devices
 * that is no CPU. */
void bhi_look_first(struct bhi_look *look, struct bhi_history *history);
/* After the run, when its context is destroyed: waits until the devices are as they were, 10 s at
 * most (a signal ends it), and notes another record of each. */
void bhi_look_last(const struct bhi_look *look, struct bhi_history *history);

#endif
