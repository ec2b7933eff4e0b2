/* A kernel that is run for a task, or several in a row: made from a form (kernel_make.h). */
#ifndef BHI_JUDGE_CHECK_KERNEL_H
#define BHI_JUDGE_CHECK_KERNEL_H

#include <bulkhead/bulkhead.h>

#include "judge/check/form.h"
#include "judge/check/outcome.h"
#include "judge/check/trial.h"
#include "request/types.h"

/* One of the kernels of a form, with what its module declares. */
struct bhi_judged_step {
    bh_kernel *kernel;   /* owned */
    bh_kernel *opposite; /* owned; the same with the opposite noise, and workgroups in the opposite
                            order (bh_kernel_options.noise); NULL: of CUDA, or without noise */
    struct bhi_kernel_types
        *types; /* owned; of a CUDA kernel those of its parameters, and its block */
};

/* What is run for a task: made from its form. */
struct bhi_judged_kernel {
    char name[64];
    struct bhi_judge_plan *plan; /* owned; NULL: one kernel, as the task launches it */
    struct bhi_judged_step steps[BHI_PLAN_KERNELS]; /* one after the other */
    size_t count;
    bool cuda;        /* it is for CUDA */
    bool has_content; /* as of its form */
    uint8_t content[BHI_CONTENT_HASH];
};

/* The task's arrays, then the scratch of the plan. */
uint32_t bhi_judged_arrays(const struct bhi_task *task, const struct bhi_judged_kernel *kernel);
const struct bhi_task_array *bhi_judged_array(const struct bhi_task *task,
                                              const struct bhi_judged_kernel *kernel,
                                              uint32_t index);
void bhi_judged_kernel_free(struct bhi_judged_kernel *kernel);

#endif
