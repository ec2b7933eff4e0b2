/* Rewrites a kernel so that it can be stopped: every loop that is not provably short looks at a
 * word in memory now and then, and the invocation returns when the host has set it. docs/guard.md
 * says what is done to a module and why.
 */
#ifndef BHI_WORKER_GUARD_GUARD_H
#define BHI_WORKER_GUARD_GUARD_H

#include "worker/backend.h"

#define BHI_GUARD_CUT 1u /* bit of flags: the driver has cut a loop short */

/* The guard's storage buffer: one of these for each record that runs. */
struct bhi_guard_words {
    uint32_t abort; /* written by the host: not 0: return */
    uint32_t flags; /* written by the kernel: BHI_GUARD_CUT */
    uint32_t alive; /* written by the kernel, for itself (entry.c) */
};

struct bhi_guard_options {
    const char *entry;
    const struct bhi_spec_constant *constants; /* the pipeline's own values */
    uint32_t constant_count;
    uint32_t max_sets;     /* maxBoundDescriptorSets */
    bool zero_initialize;  /* shaderZeroInitializeWorkgroupMemory is enabled */
    bool count_iterations; /* the driver cuts loops short without a word (llvmpipe before 25) */
};

struct bhi_guarded {
    uint32_t *code;
    size_t words;
    uint32_t set;        /* of the guard's buffer */
    uint32_t binding;    /* 0, unless it shares the set */
    bool shares_set;     /* with the kernel's own bindings: no set is free */
    uint32_t loops;      /* reachable ones, of all functions: the sum of the next four */
    uint32_t left_alone; /* provably short */
    uint32_t covered;    /* an inner loop polls for it */
    uint32_t lowered;    /* run in chunks, with a poll between them */
    uint32_t polled;     /* a poll in the header */
    uint32_t clamps;     /* indices that are kept in range now */
    uint32_t zeroed;     /* workgroup variables that begin as zero now */
};

/* |code| has passed bhi_validate(). Returns a module that must be validated again, or false with
 * *error: INVALID_KERNEL or LIMIT_EXCEEDED, and a text that names the instruction or the limit and
 * says what to do; OUT_OF_HOST_MEMORY. */
bool bhi_guard(const uint32_t *code, size_t words, const struct bhi_guard_options *options,
               struct bhi_guarded *out, struct bhi_error *error);
void bhi_guarded_fini(struct bhi_guarded *guarded);

#endif
