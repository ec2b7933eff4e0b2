/* Hurting one worker, or a zygote with all of its workers, by its pid: what both the host's own
 * thread and the second process (outside.h) do. */
#ifndef BHI_CHAOS_ENGINE_INJECT_H
#define BHI_CHAOS_ENGINE_INJECT_H

#include "chaos/history/history.h"

/* Plain bytes: it goes through a socket between the two processes. */
struct bhi_injection {
    enum bhi_fault_kind kind; /* kill, segv, stop, slow, zygote, garbage, close */
    int32_t pid;              /* of a worker */
    uint64_t salt;            /* garbage: what the bytes are made of */
};

struct bhi_injected {
    bool missed;
    uint32_t pid_count;
    int32_t pids[BHI_CHAOS_STREAMS];
    uint64_t at_ns; /* CLOCK_MONOTONIC, just before */
    char why[160];  /* missed: a sentence */
};

void bhi_inject(const struct bhi_injection *injection, struct bhi_injected *out_injected);
/* SIGCONT, if it is still there: the end of slow. */
void bhi_inject_resume(int32_t pid);

#endif
