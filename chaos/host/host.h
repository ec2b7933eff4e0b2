/* A run against a host that is not ours: injects the faults of a plan into the processes that the host
 * has of Bulkhead, into no other, and logs each as a line of JSON. */
#ifndef BHI_CHAOS_HOST_HOST_H
#define BHI_CHAOS_HOST_HOST_H

#include <stdio.h>

#include "chaos/host/guard.h"
#include "chaos/host/plan.h"

struct bhi_host_run {
    pid_t root;           /* the host, or what has started it */
    int pidfd;            /* its; the run ends with it */
    uint64_t duration_ns; /* of the run; UINT64_MAX: until the host has ended */
    uint64_t count;       /* faults that hit; 0: any number */
    struct bhi_host_plan *plan;
    struct bhi_stop_guard *guard;
    FILE *log;
    uint64_t hits, misses; /* out */
};

/* Returns when the time is over, the host has ended, a signal has asked for the end, or the log cannot be
 * written: then false, with errno. */
bool bhi_host_run(struct bhi_host_run *run);

#endif
