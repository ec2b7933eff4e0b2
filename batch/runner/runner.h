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

#include "batch/queue/queue.h"

struct bhi_runner_options {
    bh_context *context; /* the caller's; made with quarantine_deaths 0: the queue blames jobs */
    uint32_t streams; /* at least 1; of each kind: what jobs say of device and memory makes kinds */
    const char *device; /* NULL: the default */
    /* The selector of a job's device. BH_NO_DEVICE: there is none. NULL: what the job says is one.
     * Blocks. Thread: any. */
    bh_status (*choose)(void *user, const char *device, char out_selector[48], bh_detail *detail);
    uint64_t deadline_ns;         /* for jobs that give none; 0: the library's default */
    uint64_t compile_deadline_ns; /* of the driver, and of sources whose job gives none; 0: the
                                     library's default */
    bool limits_grace;
    uint64_t grace_ns;
    const char *tenant; /* NULL: none */
    /* What a device (NULL: the default one) binds at once, for expressions on large arrays. NULL:
     * nothing is known. Blocks. Thread: any. */
    bh_status (*limits)(void *user, const char *selector, uint64_t *out_range,
                        uint32_t *out_alignment, bh_detail *detail);
    bh_isolation isolation;
    bool limits_memory;
    uint64_t memory_limit;
    uint64_t halt; /* when so many jobs have failed by themselves no more are taken; 0: never */
    /* Called about ten times a second, and once at the end; RUNNING is what workers have. May be
     * NULL. Thread: the caller's. */
    void (*progress)(void *user, const struct bhi_queue_counts *counts);
    /* Called for each attempt that has ended, with the job's id and what comes next. May be NULL.
     * Thread: the caller's. */
    void (*ended)(void *user, const struct bhi_job *job, const struct bhi_attempt *attempt);
    /* Called when nothing can be done for a while, and why: when that begins and when the reason is
     * another one, or 10 s have passed. May be NULL. Thread: the caller's. */
    void (*waits)(void *user, const char *why);
    /* Called for each job whose outputs are complete and cannot be put in their places, and why.
     * May be NULL. Thread: the caller's. */
    void (*stuck)(void *user, const struct bhi_job *job, const char *why);
    void *user;
};

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
