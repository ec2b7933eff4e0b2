/* Control flow of a function: reverse post-order, dominators, structured loops. */
#ifndef BHI_WORKER_GUARD_CFG_H
#define BHI_WORKER_GUARD_CFG_H

#include "worker/guard/ir.h"

/* What becomes of a loop (guard.md in docs says why). */
enum bhi_loop_fate {
    BHI_LOOP_UNDECIDED,
    BHI_LOOP_ALONE,   /* provably short: left as it is */
    BHI_LOOP_COVERED, /* each iteration runs through an inner loop's poll */
    BHI_LOOP_LOWERED, /* in chunks, a poll between them */
    BHI_LOOP_POLLED,  /* a poll in its header */
};

struct bhi_loop_exit; /* induction.h */

struct bhi_loop {
    struct bhi_basic_block *header, *merge, *cont, *latch;
    struct bhi_loop *parent; /* next outer one */
    bool in_continue;        /* of an outer loop's continue construct */
    bool unbounded;          /* has a loop in it that is not ALONE */
    bool calls;              /* has a call in it (in no inner loop) of a function that polls */
    enum bhi_loop_fate fate;
    uint32_t blocks;                /* from which its back edge can be reached in it */
    struct bhi_basic_block *leaves; /* of a POLLED one in a continue construct: ends in its exit, */
    bool goes_on_where;             /* whose condition is this while the loop goes on */
    struct bhi_loop_exit *exit;     /* of a LOWERED one: its only exit */
    uint64_t trips;                 /* of an ALONE one: how often its header runs, at most */
    /* In one iteration, without inner loops that poll; they saturate. */
    uint64_t accesses;     /* of buffers */
    uint64_t instructions; /* of all kinds */
    uint64_t due;          /* what one iteration adds to the counter */
    uint64_t weight; /* what one iteration stands for: 1 and what runs inside unpolled; saturates */
};

/* (Re)computes everything about |function|'s control flow. Loops have a back edge that can be
 * reached; refuses cycles that are no such loop. */
void bhi_cfg_build(struct bhi_ir *ir, struct bhi_ir_function *function);

/* Both reachable. A block dominates itself. */
static inline bool bhi_dominates(const struct bhi_basic_block *a, const struct bhi_basic_block *b) {
    return a->order != 0 && b->order != 0 && a->enters <= b->enters && b->leaves <= a->leaves;
}
/* Is |block| (reachable, from before the first edit) in the construct of |loop|: dominated by its
 * header, not by its merge block? */
static inline bool bhi_loop_contains(const struct bhi_loop *loop,
                                     const struct bhi_basic_block *block) {
    return bhi_dominates(loop->header, block) && !bhi_dominates(loop->merge, block);
}
/* In the continue construct of |loop|, which contains it? */
static inline bool bhi_loop_continues(const struct bhi_loop *loop,
                                      const struct bhi_basic_block *block) {
    return bhi_dominates(loop->cont, block);
}

#endif
