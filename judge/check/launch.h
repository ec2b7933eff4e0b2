/* Runs a kernel on the inputs of a trial: in fresh buffers, with noise in its outputs and margins
 * around them. */
#ifndef BHI_JUDGE_CHECK_LAUNCH_H
#define BHI_JUDGE_CHECK_LAUNCH_H

#include "judge/check/court.h"
#include "judge/check/kernel.h"

/* What a run left. */
struct bhi_launched {
    void *outputs[BHI_TASK_ARRAYS]; /* copies, of INOUT and OUT; owned */
    bool strayed;                   /* a margin has changed */
    uint32_t stray_array;           /* of this array */
    int64_t stray_offset;           /* in bytes from the output's beginning */
};

/* Makes a stream with a worker that runs one kernel and nothing else. */
bool bhi_court_stream(const struct bhi_court *court, bh_stream **out_stream,
                      struct bhi_judge_outcome *outcome);
/* Compares the bindings and push constants of the kernel with the task's. */
bool bhi_court_check_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            struct bhi_judge_outcome *outcome);
/* Runs the kernel. After a failure *out holds nothing. */
bool bhi_court_launch(struct bhi_court *court, bh_stream *stream,
                      const struct bhi_judged_kernel *kernel, const struct bhi_task_groups *groups,
                      const struct bhi_trial *trial, struct bhi_launched *out,
                      struct bhi_judge_outcome *outcome);
void bhi_launched_free(struct bhi_launched *launched);
/* Waits for the end of a submission; a signal cancels it. Fills in |outcome| if it is poisoned. */
bool bhi_court_await(bh_event *event, struct bhi_judge_outcome *outcome);

#endif
