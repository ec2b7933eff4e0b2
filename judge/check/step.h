/* What one kernel of a candidate is launched with: bindings, push constants and groups. */
#ifndef BHI_JUDGE_CHECK_STEP_H
#define BHI_JUDGE_CHECK_STEP_H

#include "judge/check/kernel.h"
#include "request/run.h"

struct bhi_setup_step {
    struct bhi_run_request request; /* its bindings have no buffers */
    char *push;                     /* what the request borrows; owned */
    uint32_t groups[3];
    uint32_t shared_bytes;            /* of a CUDA kernel */
    uint32_t arrays[BHI_PLAN_ARRAYS]; /* by the request's binding: which array */
    uint64_t shown; /* a bit for each binding: it has what is behind its array, too */
    bh_binding bindings[BHI_PLAN_ARRAYS];
};

/* Makes all steps of |kernel|. |forms|: of each array; |push_seed|: of push constants that are drawn.
 * A kernel of several binds those arrays that it declares; a single one has to declare all. The
 * caller frees |out_steps|, |kernel->count| of them. */
bool bhi_setup_steps_make(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                          const struct bhi_task_groups *groups, const struct bhi_trial *trial,
                          const struct bhi_array forms[], uint64_t push_seed,
                          struct bhi_setup_step **out_steps, struct bhi_judge_outcome *outcome);
/* Takes NULL, too. */
void bhi_setup_steps_free(struct bhi_setup_step *steps, size_t count);
/* Can the step see what is behind the array at its binding, if there is something? */
bool bhi_setup_step_shows(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                          const struct bhi_setup_step *step, size_t number, uint32_t binding);
/* Does the device take as many groups? May start workers, and blocks then. */
bool bhi_setup_steps_check_groups(const struct bhi_court *court,
                                  const struct bhi_judged_kernel *kernel,
                                  const struct bhi_setup_step *steps, size_t size,
                                  struct bhi_judge_outcome *outcome);

#endif
