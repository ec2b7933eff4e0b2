/* What a loop counts: a value that every iteration changes by the same operation, and the
 * comparison of it that ends the loop. */
#ifndef BHI_WORKER_GUARD_INDUCTION_H
#define BHI_WORKER_GUARD_INDUCTION_H

#include "worker/guard/values.h"

struct bhi_induction {
    const struct bhi_ins *phi;     /* either the phi that holds the value, */
    const struct bhi_local *local; /* or the variable to which each iteration stores exactly once */
    uint32_t type;
    uint32_t initial; /* id of the value when the loop begins; 0: unknown */
    SpvOp op;         /* next = op(this, constant) */
    uint32_t operand; /* id of the constant */
};

/* A conditional branch that every iteration reaches: the loop goes on while |induction| |op|
 * |bound| holds. */
struct bhi_loop_exit {
    struct bhi_basic_block *block;
    struct bhi_ins *compare;
    uint32_t side; /* word of |compare| that is the induction: 3 or 4 */
    bool after;    /* the value after the step is compared */
    bool inverted; /* the loop ends when the comparison holds */
    SpvOp op;      /* the comparison as "induction op bound", true while the loop goes on */
    uint32_t bound;
    struct bhi_induction induction;
};

/* Marks the blocks from which |loop|'s back edge can be reached inside the loop, for
 * bhi_loop_runs(). Returns how many. */
uint32_t bhi_loop_mark(const struct bhi_loop *loop);
static inline bool bhi_loop_runs(const struct bhi_loop *loop, const struct bhi_basic_block *block) {
    return block->mark == loop;
}

/* Returns the opposite of an integer comparison. */
SpvOp bhi_comparison_negated(SpvOp op);

/* Does the comparison |condition| at the end of |block| test an induction of |loop|? The loop must
 * be marked. */
bool bhi_exit_find(const struct bhi_values *values, const struct bhi_loop *loop,
                   struct bhi_basic_block *block, uint32_t condition, bool goes_on_where,
                   struct bhi_loop_exit *out);
/* Does the branch at the end of |block| leave |loop| on exactly one side? Returns the condition,
 * and the value of it for which the loop goes on. */
bool bhi_loop_exit_branch(struct bhi_ir *ir, const struct bhi_loop *loop,
                          const struct bhi_basic_block *block, uint32_t *condition,
                          bool *goes_on_where);

#endif
