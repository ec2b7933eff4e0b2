#include "worker/guard/entry.h"

#include "worker/guard/cut.h"
#include "worker/guard/state.h"
#include "worker/guard/words.h"

struct bhi_ins *bhi_guard_after_variables(const struct bhi_basic_block *block) {
    struct bhi_ins *after = block->body.first;
    for (struct bhi_ins *ins = after; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpVariable) { /* all stand in front, lines between them */
            after = ins->next;
        }
    }
    return after;
}

/* Ends |block|: where |condition| (an id) holds, |out|, which returns; else on to |rest|. */
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
 * llvmpipe before 25 runs lanes that are not there: a workgroup of 5 is run as one of 8, and the 3
 * are kept from storing, and read zeros, but go round loops as long as they like; the loop goes on
 * as long as they do, and the word is a zero for them. So, there, X2 stores a one and reads it
 * back: who reads a zero is not there, and returns. (Where it is not in a branch, such a load is
 * not masked: it stands behind the check of the word.) A kernel without a loop that is counted has
 * nothing for them to stay in, and is spared it: it would cost the shortest kernels most. */
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
