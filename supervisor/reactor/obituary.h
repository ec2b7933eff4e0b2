/* An obituary: why a worker died, as the verdict of its submissions and a line of the log. */
#ifndef BHI_SUPERVISOR_REACTOR_OBITUARY_H
#define BHI_SUPERVISOR_REACTOR_OBITUARY_H

#include "supervisor/worker/worker_proc.h"

/* A line for the host's log. */
struct bhi_obituary {
    bh_log_level level;
    char line[640]; /* empty: it died as it was told */
};

/* The worker is confirmed dead: describes how it died, ends or requeues its submissions
 * (bhi_core_worker_died), and takes it out of the context. The caller drops the context's
 * reference. Lock held. */
void bhi_worker_died(struct bhi_worker *worker, struct bhi_obituary *obituary);

#endif
