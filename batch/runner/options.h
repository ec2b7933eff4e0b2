/* Options of the runner, as `bulkhead batch` gives them. */
#ifndef BHI_BATCH_RUNNER_OPTIONS_H
#define BHI_BATCH_RUNNER_OPTIONS_H

#include "batch/graph/names.h"
#include "batch/queue/queue.h"
#include "batch/runner/quarantine.h"

struct bhi_runner_options {
    bh_context *context; /* the caller's; with quarantine_deaths 0: the queue judges jobs */
    uint32_t streams;    /* at least 1; of each kind (device and memory limit of a job) */
    const char *device;  /* NULL: the default */
    /* Finds the selector of a job's device; BH_NO_DEVICE: there is no such device. NULL: the text
     * in the job is used as it is. Blocks. Thread: any. */
    bh_status (*choose)(void *user, const char *device, char out_selector[48], bh_detail *detail);
    uint64_t deadline_ns;         /* for jobs that give none; 0: the library's default */
    uint64_t compile_deadline_ns; /* of drivers, and for sources that give none; 0: the default */
    bool limits_grace;
    uint64_t grace_ns;
    const char *tenant; /* NULL: none */
    /* Tells how much of an array a device (NULL: the default) binds at once, for expressions on
     * large arrays. NULL: that is unknown. Blocks. Thread: any. */
    bh_status (*limits)(void *user, const char *selector, uint64_t *out_range,
                        uint32_t *out_alignment, bh_detail *detail);
    bh_isolation isolation;
    bool limits_memory;
    uint64_t memory_limit;
    bh_memory memory; /* where the arrays' memory is */
    uint64_t halt;    /* no more jobs are taken after so many have failed themselves; 0: never */
    bool makes;       /* the missing folders of outputs are made */
    const struct bhi_names *made;      /* whole paths of inputs that jobs write; NULL: none */
    struct bhi_quarantine *quarantine; /* that other batches share; NULL: none */
    /* Asks whether somebody has cancelled the batch. May be NULL. Does not block. Thread: the
     * caller's. */
    bool (*cancelled)(void *user);
    /* Called about ten times a second, and once at the end; RUNNING counts only jobs that workers
     * have. May be NULL. Thread: the caller's. */
    void (*progress)(void *user, const struct bhi_queue_counts *counts);
    /* Called for each attempt that has ended, with its job and what comes next. May be NULL.
     * Thread: the caller's. */
    void (*ended)(void *user, const struct bhi_job *job, const struct bhi_attempt *attempt);
    /* Called with the reason when nothing can be done for a while: at the beginning, when the
     * reason changes, and every 10 s. May be NULL. Thread: the caller's. */
    void (*waits)(void *user, const char *why);
    /* Called for each job whose complete outputs cannot be put in their places, with the reason.
     * May be NULL. Thread: the caller's. */
    void (*stuck)(void *user, const struct bhi_job *job, const char *why);
    void *user;
};

#endif
