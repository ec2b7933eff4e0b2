#include "worker/guard/induction.h"

uint32_t bhi_loop_mark(const struct bhi_loop *loop) {
    uint32_t count = 1;
    /* Walks backwards from the latch. The blocks themselves form the work list, so nothing is
     * allocated. */
    struct bhi_basic_block *work = loop->latch;
    loop->header->mark = loop;
    if (work->mark == loop) {
        return count; /* the loop is a single block */
    }
    work->mark = loop;
    work->next_marked = NULL;
    while (work) {
        struct bhi_basic_block *block = work;
        work = block->next_marked;
        count++;
        for (uint32_t i = 0; i < block->pred_count; i++) {
            struct bhi_basic_block *pred = block->preds[i];
            if (pred->mark != loop) {
                pred->mark = loop;
                pred->next_marked = work;
                work = pred;
            }
        }
    }
    return count;
}

bool bhi_loop_exit_branch(struct bhi_ir *ir, const struct bhi_loop *loop,
                          const struct bhi_basic_block *block, uint32_t *condition,
                          bool *goes_on_where) {
    const struct bhi_ins *last = bhi_block_terminator(block);
    if (bhi_ins_op(last) != SpvOpBranchConditional || block->loop != loop) {
        return false;
    }
    const struct bhi_basic_block *yes = bhi_ir_block(ir, last->words[2]);
    const struct bhi_basic_block *no = bhi_ir_block(ir, last->words[3]);
    *condition = last->words[1];
    *goes_on_where = bhi_loop_runs(loop, yes);
    return bhi_loop_runs(loop, yes) != bhi_loop_runs(loop, no);
}

/* Takes the other operand of |step|, if it is a constant. |left|: the induction is on the left side
 * of an operation that need not be commutative. */
static bool step_of(const struct bhi_values *values, const struct bhi_ins *step, bool left,
                    struct bhi_induction *out) {
    uint64_t ignored;
    const SpvOp op = bhi_ins_op(step);
    if (bhi_ins_length(step) != 5 || bhi_int_bits(values->ir, step->type) == 0 ||
        (!left && op != SpvOpIAdd && op != SpvOpIMul)) {
        return false;
    }
    out->op = op;
    out->operand = step->words[left ? 4 : 3];
    return bhi_value_of(values, out->operand, &ignored);
}

/* Takes |phi| of the header, and the instruction whose result comes to it from the latch. */
static bool from_phi(const struct bhi_values *values, const struct bhi_loop *loop,
                     const struct bhi_ins *phi, const struct bhi_ins **out_step,
                     struct bhi_induction *out) {
    const struct bhi_ins *step = NULL;
    uint32_t initial = 0;
    for (uint32_t i = 3; i + 1 < bhi_ins_length(phi); i += 2) {
        if (phi->words[i + 1] == loop->latch->label) {
            step = bhi_ir_definition(values->ir, phi->words[i]);
        } else {
            /* If there are several ways in, all must bring the same value. */
            initial = i == 3 || initial == 0 || initial == phi->words[i] ? phi->words[i] : 0;
            if (initial == 0) {
                return false;
            }
        }
    }
    if (!step || !step->block || bhi_ins_length(step) != 5) {
        return false;
    }
    *out = (struct bhi_induction){.phi = phi, .type = phi->type, .initial = initial};
    *out_step = step;
    return (step->words[3] == phi->result && step_of(values, step, true, out)) ||
           (step->words[4] == phi->result && step_of(values, step, false, out));
}

/* Accepts |local| if each iteration stores to it exactly once, and stores what it has loaded from
 * it in the same iteration and changed. */
static bool from_local(const struct bhi_values *values, const struct bhi_loop *loop,
                       const struct bhi_local *local, const struct bhi_ins **out_store,
                       struct bhi_induction *out) {
    const struct bhi_ins *store = NULL;
    for (uint32_t i = 0; i < local->store_count; i++) {
        if (bhi_loop_contains(loop, local->stores[i]->block)) {
            if (store) {
                return false;
            }
            store = local->stores[i];
        }
    }
    if (!store || store->block->loop != loop || !bhi_dominates(store->block, loop->latch)) {
        return false;
    }
    const struct bhi_ins *step = bhi_ir_definition(values->ir, store->words[2]);
    if (!step || !step->block || bhi_ins_length(step) != 5) {
        return false;
    }
    *out = (struct bhi_induction){.local = local, .type = step->type};
    *out_store = store;
    for (uint32_t side = 3; side <= 4; side++) {
        const struct bhi_ins *load = bhi_ir_definition(values->ir, step->words[side]);
        if (load && bhi_local_of_load(values->ir, load) == local &&
            bhi_loop_contains(loop, load->block) && bhi_ins_precedes(load, store) &&
            step_of(values, step, side == 3, out)) {
            /* Finds the only way into the loop. */
            struct bhi_basic_block *before = NULL;
            for (uint32_t i = 0; i < loop->header->pred_count; i++) {
                struct bhi_basic_block *pred = loop->header->preds[i];
                if (pred != loop->latch) {
                    before = !before ? pred : loop->latch;
                }
            }
            out->initial = before && before != loop->latch
                               ? bhi_local_value_at_end(values->ir, local, before)
                               : 0;
            return true;
        }
    }
    return false;
}

/* Is |id| the value of an induction before (*after is false) or after the step? */
static bool induction_of(const struct bhi_values *values, const struct bhi_loop *loop, uint32_t id,
                         bool *after, struct bhi_induction *out) {
    const struct bhi_ins *ins = bhi_ir_definition(values->ir, id);
    const struct bhi_ins *step;
    while (ins && ins->block &&
           (bhi_ins_op(ins) == SpvOpBitcast || bhi_ins_op(ins) == SpvOpCopyObject)) {
        ins = bhi_ir_definition(values->ir, ins->words[3]);
    }
    if (!ins || !ins->block || bhi_int_bits(values->ir, ins->type) == 0) {
        return false;
    }
    if (bhi_ins_op(ins) == SpvOpPhi) {
        *after = false;
        return ins->block == loop->header && from_phi(values, loop, ins, &step, out);
    }
    const struct bhi_local *local = bhi_local_of_load(values->ir, ins);
    if (local) {
        if (!bhi_loop_contains(loop, ins->block) || !from_local(values, loop, local, &step, out)) {
            return false;
        }
        *after = bhi_ins_precedes(step, ins);
        return *after || bhi_ins_precedes(ins, step);
    }
    /* |ins| may be the step itself. */
    for (uint32_t side = 3; side <= 4 && bhi_ins_length(ins) == 5; side++) {
        const struct bhi_ins *from = bhi_ir_definition(values->ir, ins->words[side]);
        if (from && bhi_ins_op(from) == SpvOpPhi && from->block == loop->header &&
            from_phi(values, loop, from, &step, out) && step == ins) {
            *after = true;
            return true;
        }
    }
    return false;
}

static const struct comparison {
    SpvOp op, mirrored, negated;
} comparisons[] = {
    {SpvOpIEqual, SpvOpIEqual, SpvOpINotEqual},
    {SpvOpINotEqual, SpvOpINotEqual, SpvOpIEqual},
    {SpvOpULessThan, SpvOpUGreaterThan, SpvOpUGreaterThanEqual},
    {SpvOpULessThanEqual, SpvOpUGreaterThanEqual, SpvOpUGreaterThan},
    {SpvOpUGreaterThan, SpvOpULessThan, SpvOpULessThanEqual},
    {SpvOpUGreaterThanEqual, SpvOpULessThanEqual, SpvOpULessThan},
    {SpvOpSLessThan, SpvOpSGreaterThan, SpvOpSGreaterThanEqual},
    {SpvOpSLessThanEqual, SpvOpSGreaterThanEqual, SpvOpSGreaterThan},
    {SpvOpSGreaterThan, SpvOpSLessThan, SpvOpSLessThanEqual},
    {SpvOpSGreaterThanEqual, SpvOpSLessThanEqual, SpvOpSLessThan},
};

static const struct comparison *comparison_of(SpvOp op) {
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        if (comparisons[i].op == op) {
            return &comparisons[i];
        }
    }
    return NULL;
}

SpvOp bhi_comparison_negated(SpvOp op) {
    return comparison_of(op)->negated;
}

bool bhi_exit_find(const struct bhi_values *values, const struct bhi_loop *loop,
                   struct bhi_basic_block *block, uint32_t condition, bool goes_on_where,
                   struct bhi_loop_exit *out) {
    struct bhi_ins *compare = bhi_ir_definition(values->ir, condition);
    const struct comparison *by =
        compare && compare->block ? comparison_of(bhi_ins_op(compare)) : NULL;
    if (!by) {
        return false;
    }
    const SpvOp op = goes_on_where ? by->op : by->negated;
    for (uint32_t side = 3; side <= 4; side++) {
        *out = (struct bhi_loop_exit){.block = block, .compare = compare, .side = side};
        if (induction_of(values, loop, compare->words[side], &out->after, &out->induction)) {
            out->op = side == 3 ? op : comparison_of(op)->mirrored;
            out->inverted = !goes_on_where;
            out->bound = compare->words[side == 3 ? 4 : 3];
            return true;
        }
    }
    return false;
}
