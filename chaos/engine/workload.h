/* What is submitted: operations that read what earlier ones have written, on whichever stream, in
 * buffers that come and go. */
#ifndef BHI_CHAOS_ENGINE_WORKLOAD_H
#define BHI_CHAOS_ENGINE_WORKLOAD_H

#include "chaos/engine/operation.h"
#include "chaos/engine/random.h"

/* So many operations back an input can lie. */
enum { BHI_WORKLOAD_RECENT = 32 };

struct bhi_workload {
    struct bhi_random random;
    struct bhi_operation *recent[BHI_WORKLOAD_RECENT]; /* referenced; NULL: none */
    uint32_t at;
};

struct bhi_plan {
    uint32_t stream;
    uint32_t input_count;
    struct bhi_operation *inputs[BHI_CHAOS_INPUTS]; /* referenced; their words are no fewer */
    struct bhi_operation *wait;                     /* referenced; or NULL */
    struct bhi_chaos_work work;
    struct bhi_operation *reuses; /* referenced: its output is overwritten; NULL: it has its own */
};

void bhi_workload_init(struct bhi_workload *workload, uint64_t seed);
/* Nothing is read any more of what was submitted so far. */
void bhi_workload_forget(struct bhi_workload *workload);
/* The next one, for |stream|. */
void bhi_workload_plan(struct bhi_workload *workload, uint32_t stream, struct bhi_plan *out_plan);
/* The one that |op| tells of, from another run. */
void bhi_workload_plan_again(struct bhi_workload *workload, const struct bhi_record *op,
                             struct bhi_plan *out_plan);
void bhi_plan_release(struct bhi_plan *plan);
/* It was submitted: others may read what it gives. */
void bhi_workload_add(struct bhi_workload *workload, struct bhi_operation *operation);

#endif
