/* Injects a fault into one worker, or into a zygote with all its workers, by pid. Both the host's
 * own thread and the second process (outside.h) do this. */
#ifndef BHI_CHAOS_ENGINE_INJECT_H
#define BHI_CHAOS_ENGINE_INJECT_H

#include "chaos/history/history.h"

/* Only plain values, because it is sent through a socket between the two processes. */
struct bhi_injection {
    enum bhi_fault_kind kind; /* kill, segv, stop, slow, zygote, garbage, close, device */
    int32_t pid;              /* of a worker */
    uint64_t salt;            /* garbage: the seed of the bytes */
};

struct bhi_injected {
    bool missed;
    uint32_t pid_count;
    int32_t pids[BHI_CHAOS_STREAMS];
    uint64_t at_ns; /* CLOCK_MONOTONIC, just before the fault */
    char why[160];  /* if it missed: a sentence */
};

void bhi_inject(const struct bhi_injection *injection, struct bhi_injected *out_injected);
/* garbage or close to the worker behind |pidfd|; below 0: it is gone, and errno says how. */
void bhi_inject_socket(const struct bhi_injection *injection, int pidfd,
                       struct bhi_injected *injected);
/* Sends SIGCONT, if the process still exists: the end of slow. */
void bhi_inject_resume(int32_t pid);

#endif
