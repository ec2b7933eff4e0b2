/* What one run of a kernel needs: fresh buffers, with inputs, noise in the outputs and margins
 * around them, and the command that binds them. */
#ifndef BHI_JUDGE_CHECK_SETUP_H
#define BHI_JUDGE_CHECK_SETUP_H

#include "judge/check/inputs.h"
#include "judge/check/kernel.h"

/* What a run left. */
struct bhi_launched {
    void *outputs[BHI_TASK_ARRAYS]; /* copies, of INOUT and OUT; owned */
    bool strayed;                   /* a margin has changed */
    uint32_t stray_array;           /* of this array */
    int64_t stray_offset;           /* in bytes from the output's beginning */
};

struct bhi_setup;

/* Compares the bindings and push constants of the kernel with the task's. */
bool bhi_court_check_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            struct bhi_judge_outcome *outcome);
/* Makes a setup; court, kernel and trial are borrowed. The buffers are in the memory of the
 * device of |near|, if it has one of its own; NULL: in the host's. |inputs|: those of a timed run;
 * otherwise NULL. Of a timed run the source makes what has content, also if it is written. */
bool bhi_setup_make(struct bhi_court *court, bh_stream *near,
                    const struct bhi_judged_kernel *kernel, const struct bhi_task_groups *groups,
                    const struct bhi_trial *trial, const struct bhi_inputs *inputs,
                    struct bhi_setup **out_setup, struct bhi_judge_outcome *outcome);
/* The dispatch, valid as long as the setup. */
const bh_command *bhi_setup_command(const struct bhi_setup *setup);
/* The buffer of array |index|, and where in it the array begins. */
bh_buffer *bhi_setup_buffer(const struct bhi_setup *setup, uint32_t index, uint64_t *out_offset);
/* Takes the outputs, after the run. After a failure *out holds nothing. */
bool bhi_setup_take(struct bhi_setup *setup, struct bhi_launched *out,
                    struct bhi_judge_outcome *outcome);
void bhi_setup_free(struct bhi_setup *setup);
void bhi_launched_free(struct bhi_launched *launched);

#endif
