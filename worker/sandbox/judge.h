/* What the filters would answer to a system call: the rule tables, read by our code and not by the
 * kernel. The tracer needs it, which lets a driver make calls that no rule allows. */
#ifndef BHI_WORKER_SANDBOX_JUDGE_H
#define BHI_WORKER_SANDBOX_JUDGE_H

#include "worker/sandbox/sandbox.h"

#define BHI_JUDGE_DESCRIPTORS 4096

/* What the rules need to know of the process; seccomp.c builds the same into the filters. */
struct bhi_judge {
    const struct bhi_driver *driver;
    int pid;
    /* Filter B: the descriptors that were open when it was set. */
    uint8_t open[BHI_JUDGE_DESCRIPTORS / 8];
};

#define BHI_JUDGE_DIES (-1)
/* Returns 0 if the call is allowed, the errno that it gets, or BHI_JUDGE_DIES. Under filter B a
 * call has to pass A as well. */
int bhi_sandbox_judge(const struct bhi_judge *judge, enum bhi_filter filter, int number,
                      const uint64_t args[6]);

#endif
