/* Runs what a queue has on streams of a context, and reports what became of it.
 *
 *   take -> stage -> submit -> event ends -> READY: write, seal -> record -> rename -> DONE
 *                                         -> poisoned: policy.h says what next
 *
 * Stagers (threads) make a job's kernel and buffers; the calling thread hands them to the stream
 * with the least in flight; finishers (threads) write outputs. Memory for what is staged and in
 * flight is bounded.
 */
#ifndef BHI_BATCH_RUNNER_RUNNER_H
#define BHI_BATCH_RUNNER_RUNNER_H

#include "batch/runner/options.h"

enum bhi_runner_result {
    BHI_RUNNER_FINISHED,    /* every job has ended */
    BHI_RUNNER_INTERRUPTED, /* a signal: what ran was cancelled, the rest waits for --resume */
    BHI_RUNNER_HALTED,      /* so many jobs have failed, and others have not begun; what workers had
                               has ended, the rest is as it was */
    BHI_RUNNER_ENVIRON,     /* no worker can be had, or the queue is broken */
    BHI_RUNNER_STUCK,       /* all has ended but jobs whose complete outputs cannot be put in their
                               places, and what depends on those */
};

/* Blocks until nothing is left to do. Where it stops early and a compile or a file keeps it, it may
 * destroy the context, as that is what ends them: the caller's bh_context_destroy is then the
 * second one, which is fine, and nothing else may be done with it. */
enum bhi_runner_result bhi_runner_run(struct bhi_queue *queue,
                                      const struct bhi_runner_options *options,
                                      struct bhi_complaint *complaint);

#endif
