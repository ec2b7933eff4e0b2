/* The faults of a run against a host: drawn from a seed, or read from what an earlier run has logged. */
#ifndef BHI_CHAOS_HOST_PLAN_H
#define BHI_CHAOS_HOST_PLAN_H

#include "chaos/engine/random.h"
#include "chaos/history/fault.h"
#include "chaos/host/target.h"

struct bhi_planned {
    uint64_t number;   /* from 1 */
    uint64_t at_ns;    /* since the run began */
    uint64_t lasts_ns; /* slow: how long; otherwise 0 */
    uint64_t salt;     /* which one of several; garbage: the bytes */
    enum bhi_fault_kind fault;
    enum bhi_target_kind target;
    char stream[64]; /* whose worker, if there is one of that stream; empty: any */
};

struct bhi_host_plan {
    struct bhi_random random;
    uint64_t twice_gap_ns;
    uint32_t fault_set, target_set;
    struct bhi_planned last;
    struct bhi_planned *read; /* owned; NULL: drawn from a seed */
    size_t read_count, next;
};

/* Faults that need no workload of their own, and those that a run injects unless told otherwise. A
 * segv looks like a crash of the kernel, which is blamed for it. */
#define BHI_HOST_FAULTS                                                                            \
    (1u << BHI_FAULT_KILL | 1u << BHI_FAULT_SEGV | 1u << BHI_FAULT_STOP | 1u << BHI_FAULT_SLOW |   \
     1u << BHI_FAULT_GARBAGE | 1u << BHI_FAULT_CLOSE)
#define BHI_HOST_FAULTS_DEFAULT  (1u << BHI_FAULT_KILL | 1u << BHI_FAULT_STOP | 1u << BHI_FAULT_SLOW)
#define BHI_HOST_TARGETS_DEFAULT ((1u << BHI_TARGET_WARDEN) - 1)

/* |rate|: faults a second. Neither set is empty. */
void bhi_plan_draw(struct bhi_host_plan *plan, uint64_t seed, uint32_t fault_set,
                   uint32_t target_set, double rate);
/* Reads the lines that a run has logged. */
bool bhi_plan_load(struct bhi_host_plan *plan, const char *path, struct bhi_complaint *complaint);
void bhi_plan_free(struct bhi_host_plan *plan);
/* The next fault; false after the last. */
bool bhi_plan_next(struct bhi_host_plan *plan, struct bhi_planned *out_planned);

#endif
