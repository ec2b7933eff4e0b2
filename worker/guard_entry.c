#include "guard_internal.h"

/*   X: variables; the word set? ──▶ A: return
 *                  └──▶ X2: the rest of X, its terminator */
void bhi_guard_entry_check(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_block *entry = g->entry->first;
    struct bhi_ins *from = entry->body.first;
    for (struct bhi_ins *ins = from; ins != NULL; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpVariable) { /* all stand in front, lines between them */
            from = ins->next;
        }
    }
    struct bhi_block *aborted = bhi_block_new(ir, entry);
    struct bhi_block *rest = bhi_block_new(ir, aborted);
    bhi_block_move_tail(entry, from, rest);
    bhi_block_took_over(ir, rest, entry->label);
    const uint32_t set = bhi_guard_load_abort(g, entry);
    bhi_block_do(ir, entry, SpvOpSelectionMerge,
                 BHI_OPERANDS(rest->label, SpvSelectionControlMaskNone));
    bhi_block_do(ir, entry, SpvOpBranchConditional, BHI_OPERANDS(set, aborted->label, rest->label));
    bhi_guard_return(g, g->entry, aborted);
    bhi_ir_set_name(ir, aborted->label, "bulkhead_abort");
}
