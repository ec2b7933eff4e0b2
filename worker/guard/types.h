/* What the guard is asked, what it makes, and the words by which a host and a guarded kernel speak.
 */
#ifndef BHI_WORKER_GUARD_TYPES_H
#define BHI_WORKER_GUARD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_spec_constant;

#define BHI_GUARD_CUT 1u /* bit of flags: the driver has cut a loop short */

/* The guard's storage buffer: one of these for each record that runs. */
struct bhi_guard_words {
    uint32_t abort; /* written by the host: not 0: return */
    uint32_t flags; /* written by the kernel: BHI_GUARD_CUT */
    uint32_t alive; /* written by the kernel, for itself (entry.c) */
    /* Written before a grid that runs in parts: the workgroups of the whole. */
    uint32_t groups[3];
};

struct bhi_guard_options {
    const char *entry;
    const struct bhi_spec_constant *constants; /* the pipeline's own values */
    uint32_t constant_count;
    uint32_t max_sets;     /* maxBoundDescriptorSets */
    bool zero_initialize;  /* shaderZeroInitializeWorkgroupMemory is enabled */
    bool count_iterations; /* the driver cuts loops short without a word (llvmpipe before 25) */
    bool in_parts;         /* a grid may run in parts: its size can be read from the words */
};

struct bhi_guarded {
    uint32_t *code;
    size_t words;
    uint32_t set;           /* of the guard's buffer */
    uint32_t binding;       /* 0, unless it shares the set */
    bool shares_set;        /* with the kernel's own bindings: no set is free */
    bool reads_grid;        /* how many workgroups there are: from the words, in a pipeline where */
    uint32_t grid_constant; /* this specialization constant (SpecId), a boolean, is true */
    bool whole_grid;        /* it also reads that in a way that the words cannot replace */
    uint32_t loops;         /* reachable ones, of all functions: the sum of the next four */
    uint32_t left_alone;    /* provably short */
    uint32_t covered;       /* an inner loop polls for it */
    uint32_t lowered;       /* run in chunks, with a poll between them */
    uint32_t polled;        /* a poll in the header */
    uint32_t clamps;        /* indices that are kept in range now */
    uint32_t zeroed;        /* workgroup variables that begin as zero now */
    uint64_t shared_bytes;  /* of workgroup memory, for itself */
};

#endif
