#include "worker/guard/entry.h"

#include "worker/guard/cut.h"
#include "worker/guard/state.h"
#include "worker/guard/words.h"

struct bhi_ins *bhi_guard_after_variables(const struct bhi_basic_block *block) {
    struct bhi_ins *after = block->body.first;
    for (struct bhi_ins *ins = after; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpVariable) { /* they come first, with lines between them */
            after = ins->next;
        }
    }
    return after;
}

/* Ends |block|: goes to |out|, which returns, if |condition| (an id) holds, else to |rest|. */
static void return_where(struct bhi_guard *g, struct bhi_basic_block *block,
                         struct bhi_basic_block *rest, struct bhi_basic_block *out,
                         uint32_t condition) {
    struct bhi_ir *ir = &g->ir;
    bhi_block_do(ir, block, SpvOpSelectionMerge,
                 BHI_OPERANDS(rest->label, SpvSelectionControlMaskNone));
    bhi_block_do(ir, block, SpvOpBranchConditional,
                 BHI_OPERANDS(condition, out->label, rest->label));
    bhi_guard_return(g, g->entry, out);
}

/*   X: variables; the word set? ──▶ A: return
 *                  └──▶ X2: the rest of X, its terminator
 *
 * llvmpipe before 25 runs excess lanes: a workgroup of 5 runs as one of 8. The 3 excess lanes
 * cannot store and read only zeros, but they do run loops. A loop goes on for as long as any lane
 * does, and an excess lane always reads the abort word as 0. So for this driver X2 stores a one and
 * reads it back: a lane that reads a zero is an excess lane, and returns. (A load that is not in a
 * branch is not masked, so this one stands after the check of the word.) A kernel without counted
 * loops does without this: excess lanes cannot stay in it, and the shortest kernels would pay
 * most. */
void bhi_guard_entry_check(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *entry = g->entry->first;
    struct bhi_basic_block *aborted = bhi_block_new(ir, entry);
    struct bhi_basic_block *rest = bhi_block_new(ir, aborted);
    bhi_block_move_tail(entry, bhi_guard_after_variables(entry), rest);
    bhi_block_took_over(ir, rest, entry->label);
    bhi_ir_set_name(ir, aborted->label, "bulkhead_abort");
    bhi_guard_cut_start(g, rest, rest->body.first);
    if (g->cells == 0) {
        return_where(g, entry, rest, aborted, bhi_guard_load_abort(g, entry));
        return;
    }
    struct bhi_basic_block *there = bhi_block_new(ir, aborted);
    struct bhi_basic_block *not_there = bhi_block_new(ir, there);
    bhi_ir_set_name(ir, there->label, "bulkhead_alive");
    return_where(g, entry, there, aborted, bhi_guard_load_abort(g, entry));
    bhi_block_do(ir, there, SpvOpStore,
                 BHI_OPERANDS(bhi_guard_word(g, there, BHI_WORD_ALIVE),
                              bhi_ir_constant(ir, g->type_uint, 1), SpvMemoryAccessVolatileMask));
    const uint32_t alive = bhi_guard_load(g, there, BHI_WORD_ALIVE);
    return_where(
        g, there, rest, not_there,
        bhi_block_value(ir, there, SpvOpIEqual, g->type_bool, BHI_OPERANDS(alive, g->zero)));
}
