/* The guard's input and output, and the words through which the host and a guarded kernel
 * communicate. */
#ifndef BHI_WORKER_GUARD_TYPES_H
#define BHI_WORKER_GUARD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_spec_constant;

#define BHI_GUARD_CUT 1u /* bit of flags: the driver has cut a loop short */

/* One element of the guard's storage buffer. Each record that runs has one. */
struct bhi_guard_words {
    uint32_t abort; /* written by the host: not 0 makes the kernel return */
    uint32_t flags; /* written by the kernel: BHI_GUARD_CUT */
    uint32_t alive; /* written by the kernel for its own use (guard.c) */
    /* Number of workgroups of the whole grid, written before a grid that runs in parts. */
    uint32_t groups[3];
};

struct bhi_guard_options {
    const char *entry;
    const struct bhi_spec_constant *constants; /* the pipeline's own values */
    uint32_t constant_count;
    uint32_t max_sets;     /* maxBoundDescriptorSets */
    bool zero_initialize;  /* shaderZeroInitializeWorkgroupMemory is enabled */
    uint32_t noise;        /* not 0: what a kernel reads before it writes it holds numbers drawn
                              from it. An even one: the opposite of the odd one that follows it,
                              and workgroups get their ids in the opposite order */
    bool count_iterations; /* the driver silently ends long loops (llvmpipe before 25) */
    bool in_parts;         /* a grid may run in parts: the kernel reads its size from the words */
};

struct bhi_guarded {
    uint32_t *code;
    size_t words;
    uint32_t set;     /* of the guard's buffer */
    uint32_t binding; /* 0, unless it shares the set */
    bool shares_set;  /* the guard's buffer is in one of the kernel's own sets: none is free */
    bool reads_grid;  /* the kernel reads the number of workgroups */
    uint32_t grid_constant; /* SpecId of a boolean; true: that number comes from the words */
    bool whole_grid;        /* the kernel also reads it in a way that the guard cannot replace */
    uint32_t loops;         /* reachable loops of all functions: the sum of the next four */
    uint32_t left_alone;    /* provably short */
    uint32_t covered;       /* an inner loop polls for the loop */
    uint32_t lowered;       /* run in chunks, with a poll between them */
    uint32_t polled;        /* poll in their header */
    uint32_t clamps;        /* indices that the guard keeps in range */
    uint32_t zeroed;        /* workgroup variables that the guard sets to zero, or fills */
    uint64_t shared_bytes;  /* workgroup memory that the guard uses itself */
};

#endif
