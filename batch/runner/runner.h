/* Runs the jobs of a queue on streams of a context, and reports how they ended.
 *
 *   take -> stage -> submit -> event ends -> READY: write, seal -> record -> rename -> DONE
 *                                         -> poisoned: policy.h decides what is next
 *
 * Stagers (threads) make a job's kernel and buffers; the calling thread submits to the least busy
 * stream; finishers (threads) write outputs. The memory of staged and running jobs is limited.
 */
#ifndef BHI_BATCH_RUNNER_RUNNER_H
#define BHI_BATCH_RUNNER_RUNNER_H

#include "batch/runner/options.h"

enum bhi_runner_result {
    BHI_RUNNER_FINISHED,    /* every job has ended */
    BHI_RUNNER_INTERRUPTED, /* by a signal: running jobs were cancelled, others wait for --resume */
    BHI_RUNNER_CANCELLED,   /* likewise, because options.cancelled said so */
    BHI_RUNNER_HALTED,      /* too many jobs have failed. Jobs that workers had have ended; the
                             * others are unchanged */
    BHI_RUNNER_ENVIRON,     /* no worker can be started */
    BHI_RUNNER_BROKEN,      /* the queue is broken; the complaint says what to do */
    BHI_RUNNER_STUCK,       /* all jobs have ended, except those whose complete outputs cannot be
                             * put in their places, and those that depend on them */
};

/* Blocks until nothing is left to do. If it stops early and waits for a compile or a file, it may
 * destroy the context, which ends the wait. Then the caller may only call bh_context_destroy, for
 * which a second call is allowed. */
enum bhi_runner_result bhi_runner_run(struct bhi_queue *queue,
                                      const struct bhi_runner_options *options,
                                      struct bhi_complaint *complaint);

#endif
