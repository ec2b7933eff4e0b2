/* What a loop counts: a value that each iteration changes by the same operation, and the test of it
 * that leaves the loop. */
#ifndef BHI_WORKER_GUARD_INDUCTION_H
#define BHI_WORKER_GUARD_INDUCTION_H

#include "worker/guard/values.h"

struct bhi_induction {
    const struct bhi_ins *phi;     /* one of these two */
    const struct bhi_local *local; /* of which each iteration stores exactly once */
    uint32_t type;
    uint32_t initial; /* id of the value on the way in; 0: not known */
    SpvOp op;         /* next = op(this, constant) */
    uint32_t operand; /* id of the constant */
};

/* A conditional branch that every iteration comes to: the loop goes on while
 * |induction| |op| |bound|. */
struct bhi_loop_exit {
    struct bhi_basic_block *block;
    struct bhi_ins *compare;
    uint32_t side; /* word of |compare| where the induction stands: 3 or 4 */
    bool after;    /* it is the value after the step that is compared */
    bool inverted; /* the loop is left where the comparison holds */
    SpvOp op;      /* with the induction on its left, and going on where it holds */
    uint32_t bound;
    struct bhi_induction induction;
};

/* Marks the blocks from which |loop|'s back edge can be reached without leaving it: then
 * bhi_loop_runs() is for them. Returns how many. */
uint32_t bhi_loop_mark(const struct bhi_loop *loop);
static inline bool bhi_loop_runs(const struct bhi_loop *loop, const struct bhi_basic_block *block) {
    return block->mark == loop;
}

/* Of a comparison of integers: the opposite. SpvOpNop: it is none. */
SpvOp bhi_comparison_negated(SpvOp op);

/* Does |compare| at the end of |block| test an induction of |loop| (which is marked)? */
bool bhi_exit_find(const struct bhi_values *values, const struct bhi_loop *loop,
                   struct bhi_basic_block *block, uint32_t condition, bool goes_on_where,
                   struct bhi_loop_exit *out);
/* Does the branch at the end of |block| leave |loop| on one side only? Tells on which truth value
 * it goes on, and the condition. */
bool bhi_loop_exit_branch(struct bhi_ir *ir, const struct bhi_loop *loop,
                          const struct bhi_basic_block *block, uint32_t *condition,
                          bool *goes_on_where);

#endif
