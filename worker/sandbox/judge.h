/* What the filters would do with a call: the rule tables, read by a program instead of by the
 * kernel. For the tracer, which lets a driver make calls that no rule knows. */
#ifndef BHI_WORKER_SANDBOX_JUDGE_H
#define BHI_WORKER_SANDBOX_JUDGE_H

#include "worker/sandbox/sandbox.h"

#define BHI_JUDGE_DESCRIPTORS 4096

/* Facts of the process, which seccomp.c builds into the filters as well. */
struct bhi_judge {
    const struct bhi_driver *driver;
    int pid;
    /* Filter B: the descriptors that were open when it was set. */
    uint8_t open[BHI_JUDGE_DESCRIPTORS / 8];
};

#define BHI_JUDGE_DIES (-1)
/* 0: allowed; an errno: answered with it; BHI_JUDGE_DIES. Behind B a call has to pass A as well. */
int bhi_sandbox_judge(const struct bhi_judge *judge, enum bhi_filter filter, int number,
                      const uint64_t args[6]);

#endif
