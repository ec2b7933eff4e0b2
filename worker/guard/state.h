/* The state while one module is guarded, shared by the guard's files: the module, its options, its
 * loops. One thread uses it. */
#ifndef BHI_WORKER_GUARD_STATE_H
#define BHI_WORKER_GUARD_STATE_H

#include "worker/guard/ir.h"
#include "worker/guard/types.h"
#include "worker/spirv/module.h"

struct bhi_guard {
    struct bhi_ir ir;
    const struct bhi_guard_options *options;
    struct bhi_guarded *out;
    struct bhi_ir_function *entry;
    struct bhi_ir_function **functions; /* by id */
    uint32_t functions_bound;
    uint64_t steps;           /* see bhi_values */
    bool no_wrap;             /* see bhi_values */
    struct bhi_module module; /* the original words, for the values of constants */
    /* Ids that the guard has added. */
    uint32_t type_uint, type_bool;
    uint32_t buffer;                     /* the storage buffer's variable */
    uint32_t word_pointer;               /* type of a pointer into it */
    uint32_t counter;                    /* uint, Private: iterations since the last look */
    uint32_t cells, cell_pointer, group; /* cut.c's variables; 0: not needed so far */
    uint32_t zero, limit;                /* constants */
    uint32_t drawn;                      /* numbers of noise so far */
};

/* Numbers of noise that differ in this bit alone are opposites: of bits, and of the order of workgroups. */
static inline bool bhi_guard_is_opposite(const struct bhi_guard *g) {
    return g->options->noise != 0 && (g->options->noise & 1) == 0;
}

/* The passes, in their order. */
void bhi_guard_add_words(struct bhi_guard *g);
void bhi_guard_loops(struct bhi_guard *g);
void bhi_guard_clamp(struct bhi_guard *g);
void bhi_guard_reverse(struct bhi_guard *g); /* if the order of workgroups is the opposite one */
void bhi_guard_grid(struct bhi_guard *g);
void bhi_guard_zero(struct bhi_guard *g);
void bhi_guard_fill_private(struct bhi_guard *g); /* the last two: if noise is asked for */
void bhi_guard_define(struct bhi_guard *g);

#endif
