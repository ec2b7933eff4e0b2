/* Options of the runner, as `bulkhead batch` gives them. */
#ifndef BHI_BATCH_RUNNER_OPTIONS_H
#define BHI_BATCH_RUNNER_OPTIONS_H

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
    bh_memory memory; /* where the arrays are */
    uint64_t halt;    /* when so many jobs have failed by themselves no more are taken; 0: never */
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

#endif
