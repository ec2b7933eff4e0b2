/* Control flow of a function: reverse post-order, dominators, structured loops. */
#ifndef BHI_WORKER_GUARD_CFG_H
#define BHI_WORKER_GUARD_CFG_H

#include "worker/guard/ir.h"

/* What the guard does with a loop (docs/kernels.md says why). */
enum bhi_loop_fate {
    BHI_LOOP_UNDECIDED,
    BHI_LOOP_ALONE,   /* provably short: left as it is */
    BHI_LOOP_COVERED, /* each iteration runs through an inner loop's poll */
    BHI_LOOP_LOWERED, /* runs in chunks, with a poll between them */
    BHI_LOOP_POLLED,  /* polls in its header */
};

struct bhi_loop_exit; /* induction.h */

struct bhi_loop {
    struct bhi_basic_block *header, *merge, *cont, *latch;
    struct bhi_loop *parent; /* the next outer loop */
    bool in_continue;        /* of an outer loop's continue construct */
    bool unbounded;          /* contains a loop that is not ALONE */
    bool calls;              /* contains, outside of inner loops, a call of a function that polls */
    enum bhi_loop_fate fate;
    uint32_t blocks;                /* blocks from which the back edge can be reached in it */
    struct bhi_basic_block *leaves; /* of a POLLED loop in a continue construct: its exit */
    bool goes_on_where;             /* the exit's condition has this value while the loop goes on */
    struct bhi_loop_exit *exit;     /* of a LOWERED loop: its only exit */
    uint64_t trips;                 /* of an ALONE loop: the most times that its header runs */
    /* What one iteration does, without inner loops that poll. Stops at UINT64_MAX. */
    uint64_t accesses;     /* of buffers */
    uint64_t instructions; /* of all kinds */
    uint64_t due;          /* what one iteration adds to the poll counter */
    uint64_t weight; /* 1 + iterations inside one iteration that do not poll; stops at UINT64_MAX */
    uint64_t skipped; /* of inner loops, once in each run of this one (loops.c, weigh_untaken) */
};

/* Computes, or recomputes, everything about |function|'s control flow. A loop has a back edge that
 * can be reached; any other cycle is refused. */
void bhi_cfg_build(struct bhi_ir *ir, struct bhi_ir_function *function);

/* Both must be reachable. A block dominates itself. */
static inline bool bhi_dominates(const struct bhi_basic_block *a, const struct bhi_basic_block *b) {
    return a->order != 0 && b->order != 0 && a->enters <= b->enters && b->leaves <= a->leaves;
}
/* Is |block| in the construct of |loop|, that is, dominated by its header and not by its merge
 * block? |block| must be reachable, and older than the first edit. */
static inline bool bhi_loop_contains(const struct bhi_loop *loop,
                                     const struct bhi_basic_block *block) {
    return bhi_dominates(loop->header, block) && !bhi_dominates(loop->merge, block);
}
/* Is |block| in the continue construct of |loop|? |loop| must contain it. */
static inline bool bhi_loop_continues(const struct bhi_loop *loop,
                                      const struct bhi_basic_block *block) {
    return bhi_dominates(loop->cont, block);
}

#endif
