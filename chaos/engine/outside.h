/* The second process of `--outside`. It knows only the host's pid, finds workers in /proc as an
 * administrator (or an OOM killer) would, and injects faults when the host asks for it. */
#ifndef BHI_CHAOS_ENGINE_OUTSIDE_H
#define BHI_CHAOS_ENGINE_OUTSIDE_H

#include <sys/types.h>

#include "chaos/engine/inject.h"

struct bhi_outside {
    pid_t pid;  /* 0: there is none */
    int socket; /* owned */
};

/* Forks it. Call it before the caller has threads. */
bool bhi_outside_start(struct bhi_outside *outside, struct bhi_complaint *complaint);
/* Ignores |injection->pid|: |injection->salt| selects one of the workers that it finds. Blocks
 * until it is done. */
void bhi_outside_inject(struct bhi_outside *outside, const struct bhi_injection *injection,
                        struct bhi_injected *out_injected);
void bhi_outside_resume(struct bhi_outside *outside, int32_t pid);
void bhi_outside_end(struct bhi_outside *outside); /* may be one that is all zero */

#endif
