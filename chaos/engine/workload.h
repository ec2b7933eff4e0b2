/* The submitted operations: they read what earlier ones have written, on any stream, in buffers
 * that are made and released. */
#ifndef BHI_CHAOS_ENGINE_WORKLOAD_H
#define BHI_CHAOS_ENGINE_WORKLOAD_H

#include "chaos/engine/operation.h"
#include "chaos/engine/random.h"

/* How many operations back an input can lie. */
enum { BHI_WORKLOAD_RECENT = 32 };

struct bhi_workload {
    struct bhi_random random;
    struct bhi_operation *recent[BHI_WORKLOAD_RECENT]; /* referenced; NULL: none */
    uint32_t at;
    bool uses_device; /* some outputs are in device memory */
};

struct bhi_plan {
    uint32_t stream;
    uint32_t input_count;
    struct bhi_operation *inputs[BHI_CHAOS_INPUTS]; /* referenced; with at least as many words */
    struct bhi_operation *wait;                     /* referenced, or NULL */
    struct bhi_chaos_work work;
    struct bhi_operation *reuses; /* referenced: its output is overwritten; NULL: a new output */
    bool on_device;               /* a new output is in device memory */
};

void bhi_workload_init(struct bhi_workload *workload, uint64_t seed, bool uses_device);
/* Later operations read nothing that was submitted so far. */
void bhi_workload_forget(struct bhi_workload *workload);
/* Plans the next operation for |stream|. */
void bhi_workload_plan(struct bhi_workload *workload, uint32_t stream, struct bhi_plan *out_plan);
/* Plans again the operation |op| of another run. */
void bhi_workload_plan_again(struct bhi_workload *workload, const struct bhi_record *op,
                             struct bhi_plan *out_plan);
void bhi_plan_release(struct bhi_plan *plan);
/* The operation was submitted: others may read its output. */
void bhi_workload_add(struct bhi_workload *workload, struct bhi_operation *operation);

#endif
