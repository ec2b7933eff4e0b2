#include "worker/guard/poll.h"

#include "worker/guard/cfg.h"
#include "worker/guard/cut.h"
#include "worker/guard/state.h"
#include "worker/guard/words.h"

#include <bulkhead/bulkhead.h>

/* The counter's value after the word was seen set in a place that cannot return. */
#define STOPPED 0x80000000u

void bhi_guard_drop_hints(struct bhi_guard *g, struct bhi_ins *merge) {
    const uint32_t kept =
        merge->words[3] & (SpvLoopControlDontUnrollMask | SpvLoopControlDependencyInfiniteMask);
    bhi_ins_set(&g->ir, merge, BHI_OPERANDS(merge->words[1], merge->words[2], kept));
}

/* A loop of one block is its own continue construct, in which nothing may return: this gives it a
 * second block as the continue construct. */
static void split_latch(struct bhi_guard *g, struct bhi_loop *loop) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *header = loop->header;
    struct bhi_basic_block *cont = bhi_block_new(ir, header);
    bhi_block_do(ir, cont, SpvOpBranch, BHI_OPERANDS(header->label));
    bhi_block_merge(header)->words[2] = cont->label;
    struct bhi_ins *last = bhi_block_terminator(header);
    const uint32_t first = bhi_ins_op(last) == SpvOpBranch ? 1 : 2;
    for (uint32_t i = first; i < bhi_ins_length(last) && i < first + 2; i++) {
        if (last->words[i] == header->label) {
            last->words[i] = cont->label;
        }
    }
    bhi_block_rename_pred(header, header->label, cont->label);
    loop->cont = loop->latch = cont;
}

/* |rest| has the terminator that followed OpLoopMerge. If it chooses between two blocks of the
 * loop, it now needs an OpSelectionMerge of its own. */
static void make_selection(struct bhi_guard *g, const struct bhi_loop *loop,
                           struct bhi_basic_block *rest) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_ins *last = bhi_block_terminator(rest);
    const uint32_t merge = loop->merge->label, cont = loop->cont->label;
    if (bhi_ins_op(last) != SpvOpBranchConditional || last->words[2] == last->words[3] ||
        last->words[2] == merge || last->words[3] == merge || last->words[2] == cont ||
        last->words[3] == cont) {
        return;
    }
    struct bhi_basic_block *never = bhi_block_new(ir, rest);
    bhi_block_do(ir, never, SpvOpUnreachable, NULL, 0);
    bhi_block_do_before(ir, rest, last, SpvOpSelectionMerge,
                        BHI_OPERANDS(never->label, SpvSelectionControlMaskNone));
}

uint32_t bhi_guard_weight(struct bhi_guard *g, const struct bhi_loop *loop) {
    return bhi_ir_constant(&g->ir, g->type_uint,
                           loop->due < BHI_GUARD_LIMIT ? (uint32_t)loop->due : BHI_GUARD_LIMIT);
}

void bhi_guard_look(struct bhi_guard *g, const struct bhi_loop *loop, struct bhi_basic_block *from,
                    uint32_t due, struct bhi_basic_block *look, struct bhi_basic_block *aborted,
                    struct bhi_basic_block *reset, struct bhi_basic_block *to) {
    struct bhi_ir *ir = &g->ir;
    bhi_block_do(ir, from, SpvOpSelectionMerge,
                 BHI_OPERANDS(to->label, SpvSelectionControlMaskNone));
    bhi_block_do(ir, from, SpvOpBranchConditional, BHI_OPERANDS(due, look->label, to->label));
    look = bhi_guard_cut_look(g, loop, look);
    const uint32_t set = bhi_guard_load_abort(g, look);
    bhi_block_do(ir, look, SpvOpSelectionMerge,
                 BHI_OPERANDS(reset->label, SpvSelectionControlMaskNone));
    bhi_block_do(ir, look, SpvOpBranchConditional, BHI_OPERANDS(set, aborted->label, reset->label));
    bhi_guard_return(g, loop->header->function, aborted);
    bhi_block_do(ir, reset, SpvOpStore, BHI_OPERANDS(g->counter, g->zero));
    bhi_block_do(ir, reset, SpvOpBranch, BHI_OPERANDS(to->label));
}

/* Leaves in |header| only its phis, its OpLoopMerge and a branch to |poll|; moves the rest, with
 * its terminator, to |rest|. */
static void split_header(struct bhi_guard *g, struct bhi_loop *loop, struct bhi_basic_block *poll,
                         struct bhi_basic_block *rest) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *header = loop->header;
    bhi_block_move_tail(header, bhi_block_after_phis(header), rest);
    bhi_block_took_over(ir, rest, header->label);
    struct bhi_ins *merge = bhi_block_merge(rest);
    bhi_ins_remove(&rest->body, merge);
    merge->block = header;
    bhi_ins_append(&header->body, merge);
    bhi_block_do(ir, header, SpvOpBranch, BHI_OPERANDS(poll->label));
    make_selection(g, loop, rest);
    if (header->rounds != 0) { /* checked before the rest runs */
        struct bhi_ins *rounds = bhi_ir_definition(ir, header->rounds);
        bhi_ins_remove(&rest->body, rounds);
        rounds->block = poll;
        bhi_ins_append(&poll->body, rounds);
    }
    bhi_guard_drop_hints(g, merge);
    bhi_ir_set_name(ir, poll->label, "bulkhead_poll");
}

/*   H: phis; OpLoopMerge; Branch P
 *   P: counter += weight; counter >= LIMIT? ──▶ Q: the word set? ──▶ A: return
 *       │                                            └──▶ Y: counter = 0 ─┐
 *       └──▶ R: the rest of H, its terminator ◀──────────────────────────┘
 * The counter is reset only if the word is not set. Once the word is set, every later poll looks at
 * once, so the callers return at their own polls. */
void bhi_guard_poll(struct bhi_guard *g, struct bhi_loop *loop) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *header = loop->header;
    if (loop->cont == header) {
        if (loop->latch != header) {
            BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                          "the loop at %s is its own continue construct, from which the guard "
                          "cannot return; give it a continue target of its own, or mark the kernel "
                          "trusted",
                          bhi_ir_describe(ir, SpvOpLabel, header->label));
        }
        split_latch(g, loop);
    }
    struct bhi_basic_block *poll = bhi_block_new(ir, header);
    struct bhi_basic_block *look = bhi_block_new(ir, poll);
    struct bhi_basic_block *aborted = bhi_block_new(ir, look);
    struct bhi_basic_block *reset = bhi_block_new(ir, aborted);
    struct bhi_basic_block *rest = bhi_block_new(ir, reset);

    split_header(g, loop, poll, rest);
    const uint32_t due = bhi_guard_count(g, poll, bhi_guard_weight(g, loop));
    bhi_guard_look(g, loop, poll, due, look, aborted, reset, rest);
}

/*   P: counter += weight; counter >= LIMIT? ──▶ Q: counter = the word set ? STOPPED : 0 ─┐
 *       └──▶ R: go on while the condition holds and counter < STOPPED ◀──────────────────┘
 * Nothing may return in a continue construct. So the loop ends through its own exit, and the
 * counter stays so large that every later poll looks at once: the poll of the loop around it
 * returns. P is in the header, or in the block of the exit. */
void bhi_guard_poll_exit(struct bhi_guard *g, struct bhi_loop *loop) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *header = loop->header, *poll = loop->leaves;
    if (loop->cont == header && loop->latch == header) {
        split_latch(g, loop);
    }
    if (poll == header) {
        poll = bhi_block_new(ir, header);
    }
    struct bhi_basic_block *look = bhi_block_new(ir, poll);
    struct bhi_basic_block *rest = bhi_block_new(ir, look);
    if (loop->leaves == header) {
        split_header(g, loop, poll, rest);
    } else {
        struct bhi_ins *merge = bhi_block_merge(poll);
        bhi_block_move_tail(poll, merge ? merge : bhi_block_terminator(poll), rest);
        bhi_block_took_over(ir, rest, poll->label);
    }
    const uint32_t stopped = bhi_ir_constant(ir, g->type_uint, STOPPED);
    const uint32_t due = bhi_guard_count(g, poll, bhi_guard_weight(g, loop));
    bhi_block_do(ir, poll, SpvOpSelectionMerge,
                 BHI_OPERANDS(rest->label, SpvSelectionControlMaskNone));
    bhi_block_do(ir, poll, SpvOpBranchConditional, BHI_OPERANDS(due, look->label, rest->label));

    look = bhi_guard_cut_look(g, loop, look);
    const uint32_t set = bhi_guard_load_abort(g, look);
    const uint32_t next =
        bhi_block_value(ir, look, SpvOpSelect, g->type_uint, BHI_OPERANDS(set, stopped, g->zero));
    bhi_block_do(ir, look, SpvOpStore, BHI_OPERANDS(g->counter, next));
    bhi_block_do(ir, look, SpvOpBranch, BHI_OPERANDS(rest->label));

    struct bhi_ins *branch = bhi_block_terminator(rest);
    struct bhi_ins *at = bhi_block_merge(rest) ? bhi_block_merge(rest) : branch;
    const uint32_t counter =
        bhi_block_value_before(ir, rest, at, SpvOpLoad, g->type_uint, BHI_OPERANDS(g->counter));
    const uint32_t stays = bhi_block_value_before(
        ir, rest, at, loop->goes_on_where ? SpvOpULessThan : SpvOpUGreaterThanEqual, g->type_bool,
        BHI_OPERANDS(counter, stopped));
    branch->words[1] =
        bhi_block_value_before(ir, rest, at, loop->goes_on_where ? SpvOpLogicalAnd : SpvOpLogicalOr,
                               g->type_bool, BHI_OPERANDS(branch->words[1], stays));
}
