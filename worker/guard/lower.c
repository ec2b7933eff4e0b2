/* Loops that count up or down by one to a bound run in chunks, with a poll between two chunks. The
 * body is not copied, and an iteration does nothing more than before.
 *
 *   O  (keeps H's id): phis [from outside; OC: H's phis]
 *       n' = the bound;  lim = i0 < n' && n' - i0 > CHUNK ? i0 + CHUNK : n'
 *       OpLoopMerge M OC; Branch H2
 *   H2: H's phis [O: O's phis; B: as before]
 *       OpLoopMerge IM C …  the test is i < lim, and leads to IM
 *   IM: more = i < n';  counter += (i - i0 + 1) * weight;  counter >= LIMIT? ──▶ Q
 *   Q:  the word set? ──▶ A: return
 *   Y:  counter = 0
 *   Z:  more? ──▶ OC ──▶ O
 *       └──▶ M
 *
 * This is done only for i < n in steps of 1 and i > n in steps of -1: then i meets lim exactly, and
 * nothing overflows.
 */
#include "worker/guard/lower.h"

#include "worker/guard/cfg.h"
#include "worker/guard/induction.h"
#include "worker/guard/ir.h"
#include "worker/guard/locals.h"
#include "worker/guard/poll.h"
#include "worker/guard/state.h"
#include "worker/guard/values.h"
#include "worker/guard/words.h"

#include <bulkhead/bulkhead.h>
#include <spirv/unified1/GLSL.std.450.h>
#include <string.h>

/* -- which instructions may run once more, or in another place, with the same effect ------------ */

static bool within(SpvOp op, SpvOp first, SpvOp last) {
    return op >= first && op <= last;
}

/* Is |ins| from an import of GLSL.std.450, and takes no pointer? */
static bool is_pure_extended(const struct bhi_ir *ir, const struct bhi_ins *ins) {
    const struct bhi_ins *import = bhi_ir_definition(ir, ins->words[3]);
    const uint32_t number = ins->words[4];
    return import && bhi_ins_op(import) == SpvOpExtInstImport &&
           strcmp((const char *)&import->words[2], "GLSL.std.450") == 0 &&
           number != GLSLstd450Modf && number != GLSLstd450Frexp &&
           number < GLSLstd450InterpolateAtCentroid;
}

static bool ins_is_arithmetic(const struct bhi_ir *ir, const struct bhi_ins *ins) {
    const SpvOp op = bhi_ins_op(ins);
    return within(op, SpvOpVectorExtractDynamic, SpvOpTranspose) ||
           within(op, SpvOpConvertFToU, SpvOpFConvert) || op == SpvOpQuantizeToF16 ||
           op == SpvOpBitcast || within(op, SpvOpSNegate, SpvOpSMulExtended) ||
           within(op, SpvOpAny, SpvOpFUnordGreaterThanEqual) ||
           within(op, SpvOpShiftRightLogical, SpvOpBitCount) ||
           (op == SpvOpExtInst && is_pure_extended(ir, ins));
}

/* Is |ins| without side effects, or a load? Then it may run twice. */
static bool ins_is_repeatable(const struct bhi_ir *ir, const struct bhi_ins *ins) {
    switch (bhi_ins_op(ins)) {
    case SpvOpLoad:
        return bhi_ins_length(ins) < 5 || (ins->words[4] & SpvMemoryAccessVolatileMask) == 0;
    case SpvOpAccessChain:
    case SpvOpInBoundsAccessChain:
    case SpvOpArrayLength:
    case SpvOpUndef:
    case SpvOpLine:
    case SpvOpNoLine:
        return true;
    default:
        return ins_is_arithmetic(ir, ins);
    }
}

/* Does |pointer| point to memory that no invocation can write? */
static bool pointer_is_constant(const struct bhi_ir *ir, uint32_t pointer) {
    const struct bhi_ins *ins = bhi_ir_definition(ir, pointer);
    while (ins &&
           (bhi_ins_op(ins) == SpvOpAccessChain || bhi_ins_op(ins) == SpvOpInBoundsAccessChain)) {
        ins = bhi_ir_definition(ir, ins->words[3]);
    }
    if (!ins || bhi_ins_op(ins) != SpvOpVariable) {
        return false;
    }
    const struct bhi_ins *type = bhi_ir_definition(ir, ins->type);
    switch (ins->words[3]) {
    case SpvStorageClassPushConstant:
    case SpvStorageClassInput:
        return true;
    case SpvStorageClassUniform: {
        uint32_t block = type->words[3];
        const struct bhi_ins *held = bhi_ir_definition(ir, block);
        while (held &&
               (bhi_ins_op(held) == SpvOpTypeArray || bhi_ins_op(held) == SpvOpTypeRuntimeArray)) {
            block = held->words[2];
            held = bhi_ir_definition(ir, block);
        }
        /* modules before SPIR-V 1.3 have writable blocks there */
        return !bhi_ir_is_decorated(ir, block, SpvDecorationBufferBlock);
    }
    default:
        return false;
    }
}

#define CHUNK        1024u
#define CHUNK_LEAST  16u
#define CHUNK_WEIGHT 65536u /* about this many iterations, of all loops, are in a chunk */
#define MAX_CLONES   32u

/* -- may it be lowered? ------------------------------------------------------------------------ */

/* Does only one edge leave the loop, from |exit| to the merge block, and does no other edge lead to
 * that? */
static bool has_one_exit(struct bhi_ir *ir, const struct bhi_loop *loop,
                         const struct bhi_basic_block *exit) {
    const struct bhi_ir_function *f = loop->header->function;
    uint32_t left = loop->blocks;
    for (uint32_t i = loop->header->order - 1; i < f->reachable && left > 0; i++) {
        if (!bhi_loop_runs(loop, f->rpo[i])) {
            continue;
        }
        left--;
        const uint32_t *labels;
        const uint32_t count = bhi_block_successors(ir, f->rpo[i], &labels);
        for (uint32_t k = 0; k < count; k++) {
            const struct bhi_basic_block *to = bhi_ir_block(ir, labels[k]);
            if (!bhi_loop_runs(loop, to) && (f->rpo[i] != exit || to != loop->merge)) {
                return false;
            }
        }
    }
    return loop->merge->pred_count == 1;
}

/* Returns the block that may leave the loop, if only instructions without effects lead to it
 * straight from the header; else NULL. */
static struct bhi_basic_block *find_test(struct bhi_ir *ir, const struct bhi_loop *loop) {
    struct bhi_basic_block *block = loop->header;
    for (;;) {
        const struct bhi_ins *last = bhi_block_terminator(block);
        const struct bhi_ins *merge = bhi_block_merge(block);
        for (const struct bhi_ins *ins = block->body.first; ins; ins = ins->next) {
            if (ins != last && ins != merge && bhi_ins_op(ins) != SpvOpPhi &&
                !ins_is_repeatable(ir, ins)) {
                return NULL;
            }
        }
        if (bhi_dominates(loop->cont, block) || (merge && block != loop->header)) {
            return NULL;
        }
        if (bhi_ins_op(last) != SpvOpBranch) {
            return block;
        }
        block = bhi_ir_block(ir, last->words[1]);
        if (block->pred_count != 1) {
            return NULL;
        }
    }
}

/* Can |id| be computed outside of |loop|, with the same value as in each iteration? */
static bool is_invariant(const struct bhi_values *values, const struct bhi_loop *loop, uint32_t id,
                         unsigned *budget) {
    const struct bhi_ins *ins = bhi_ir_definition(values->ir, id);
    if (!ins || *budget == 0) {
        return false;
    }
    if (!ins->block || !bhi_loop_contains(loop, ins->block)) {
        return true;
    }
    --*budget;
    if (bhi_ins_length(ins) > 64 || ins->result == 0) {
        return false;
    }
    if (bhi_ins_op(ins) == SpvOpLoad) {
        const struct bhi_local *local = bhi_local_of_load(values->ir, ins);
        if (local) {
            for (uint32_t i = 0; i < local->store_count; i++) {
                if (bhi_loop_contains(loop, local->stores[i]->block)) {
                    return false;
                }
            }
            return true;
        }
        if (!ins_is_repeatable(values->ir, ins) ||
            !pointer_is_constant(values->ir, ins->words[3])) {
            return false;
        }
    } else if (!ins_is_repeatable(values->ir, ins)) {
        return false;
    }
    for (uint32_t i = 3; i < bhi_ins_length(ins); i++) {
        if ((ins->ids >> i & 1) != 0 && !is_invariant(values, loop, ins->words[i], budget)) {
            return false;
        }
    }
    return true;
}

/* Returns +1, -1, or 0 for any other step. */
static int direction(const struct bhi_values *values, const struct bhi_loop_exit *exit) {
    uint64_t operand;
    if (!bhi_value_of(values, exit->induction.operand, &operand)) {
        return 0;
    }
    const bool adds = exit->induction.op == SpvOpIAdd;
    if (!adds && exit->induction.op != SpvOpISub) {
        return 0;
    }
    const int step = operand == 1 ? 1 : operand == UINT32_MAX ? -1 : 0;
    return adds ? step : -step;
}

/* Does the comparison use the phi or load directly, or only cast to the other signedness? */
static bool is_plain(const struct bhi_values *values, const struct bhi_loop_exit *exit) {
    const struct bhi_ins *ins = bhi_ir_definition(values->ir, exit->compare->words[exit->side]);
    if (bhi_ins_op(ins) == SpvOpBitcast) {
        ins = bhi_ir_definition(values->ir, ins->words[3]);
    }
    return ins == exit->induction.phi ||
           (exit->induction.local && bhi_local_of_load(values->ir, ins) == exit->induction.local);
}

bool bhi_guard_can_lower(struct bhi_guard *g, const struct bhi_values *values,
                         struct bhi_loop *loop) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_loop_exit exit;
    uint32_t condition;
    bool goes_on_where;
    unsigned budget = MAX_CLONES;
    struct bhi_basic_block *test = loop->cont != loop->header ? find_test(ir, loop) : NULL;
    if (!test || !bhi_loop_exit_branch(ir, loop, test, &condition, &goes_on_where) ||
        !bhi_exit_find(values, loop, test, condition, goes_on_where, &exit) || exit.after ||
        !bhi_loop_contains(loop, exit.compare->block) || !is_plain(values, &exit) ||
        bhi_int_bits(ir, exit.induction.type) != 32) {
        return false;
    }
    const int step = direction(values, &exit);
    const bool up = step == 1 && (exit.op == SpvOpULessThan || exit.op == SpvOpSLessThan);
    const bool down = step == -1 && (exit.op == SpvOpUGreaterThan || exit.op == SpvOpSGreaterThan);
    const struct bhi_ins *bound = bhi_ir_definition(ir, exit.bound);
    if ((!up && !down) || !bound || bhi_int_bits(ir, bound->type) != 32 ||
        !is_invariant(values, loop, exit.bound, &budget) || !has_one_exit(ir, loop, test)) {
        return false;
    }
    loop->exit = bhi_ir_alloc(ir, sizeof *loop->exit);
    *loop->exit = exit;
    return true;
}

/* -- lowering ---------------------------------------------------------------------------------- */

/* Returns |id|; if |loop| computes it (its header's instructions are now in |inner|), returns a
 * copy that is computed at the end of |outer|. */
static uint32_t clone(struct bhi_guard *g, const struct bhi_loop *loop,
                      const struct bhi_basic_block *inner, struct bhi_basic_block *outer,
                      uint32_t id) {
    struct bhi_ir *ir = &g->ir;
    const struct bhi_ins *ins = bhi_ir_definition(ir, id);
    if (!ins->block || (ins->block != inner && !bhi_loop_contains(loop, ins->block))) {
        return id;
    }
    uint32_t operands[64];
    const uint32_t length = bhi_ins_length(ins);
    for (uint32_t i = 3; i < length; i++) {
        const bool is_id = (ins->ids >> i & 1) != 0;
        operands[i] = is_id ? clone(g, loop, inner, outer, ins->words[i]) : ins->words[i];
    }
    return bhi_block_value(ir, outer, bhi_ins_op(ins), ins->type, &operands[3], length - 3);
}

/* O's phis take values from outside and from OC; H2's phis from O and from the latch. */
static void split_phis(struct bhi_guard *g, const struct bhi_loop *loop,
                       struct bhi_basic_block *outer, struct bhi_basic_block *inner,
                       uint32_t outer_cont) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_ins *end = bhi_block_after_phis(inner);
    for (struct bhi_ins *phi = inner->body.first; phi != end; phi = phi->next) {
        if (bhi_ins_op(phi) == SpvOpPhi) {
            struct bhi_ins *first = bhi_phi_split(ir, phi, outer, loop->latch->label);
            const uint32_t count = bhi_ins_length(first) - 3;
            uint32_t *operands = bhi_ir_alloc(ir, (count + 2) * sizeof *operands);
            memcpy(operands, &first->words[3], count * sizeof *operands);
            operands[count] = phi->result;
            operands[count + 1] = outer_cont;
            bhi_ins_set(ir, first, operands, count + 2);
        }
    }
}

/* Returns the induction's value at the end of O. */
static uint32_t value_in(struct bhi_guard *g, const struct bhi_loop_exit *exit,
                         struct bhi_basic_block *outer) {
    struct bhi_ir *ir = &g->ir;
    const struct bhi_ins *shown = bhi_ir_definition(ir, exit->compare->words[exit->side]);
    uint32_t value;
    if (exit->induction.phi) {
        value = exit->induction.phi->words[3]; /* H2's phi: from O */
    } else {
        value = bhi_block_value(ir, outer, SpvOpLoad, exit->induction.type,
                                BHI_OPERANDS(exit->induction.local->variable->result));
    }
    return bhi_ins_op(shown) == SpvOpBitcast
               ? bhi_block_value(ir, outer, SpvOpBitcast, shown->type, BHI_OPERANDS(value))
               : value;
}

void bhi_guard_lower(struct bhi_guard *g, struct bhi_loop *loop) {
    struct bhi_ir *ir = &g->ir;
    const struct bhi_loop_exit *exit = loop->exit;
    const bool up = exit->op == SpvOpULessThan || exit->op == SpvOpSLessThan;
    const uint32_t type = bhi_ir_definition(ir, exit->compare->words[exit->side])->type;
    struct bhi_basic_block *outer = loop->header, *merge = loop->merge;

    struct bhi_basic_block *inner = bhi_block_new(ir, outer);       /* H2 */
    struct bhi_basic_block *end = bhi_block_new(ir, merge->prev);   /* IM */
    struct bhi_basic_block *look = bhi_block_new(ir, end);          /* Q */
    struct bhi_basic_block *aborted = bhi_block_new(ir, look);      /* A */
    struct bhi_basic_block *reset = bhi_block_new(ir, aborted);     /* Y */
    struct bhi_basic_block *decide = bhi_block_new(ir, reset);      /* Z */
    struct bhi_basic_block *outer_cont = bhi_block_new(ir, decide); /* OC */
    struct bhi_basic_block *test = exit->block == outer ? inner : exit->block;

    bhi_block_rename_pred(merge, exit->block->label, decide->label);
    bhi_block_move_tail(outer, outer->body.first, inner);
    bhi_block_took_over(ir, inner, outer->label);
    bhi_block_retarget(ir, loop->latch, outer->label, inner->label);
    split_phis(g, loop, outer, inner, outer_cont->label);
    struct bhi_ins *inner_merge = bhi_block_merge(inner);
    bhi_guard_drop_hints(g, inner_merge);
    inner_merge->words[1] = end->label;

    /* O: computes where this chunk ends. */
    const uint32_t first = value_in(g, exit, outer);
    uint32_t bound = clone(g, loop, inner, outer, exit->bound);
    if (bhi_ir_definition(ir, bound)->type != type) {
        bound = bhi_block_value(ir, outer, SpvOpBitcast, type, BHI_OPERANDS(bound));
    }
    uint32_t chunk = CHUNK;
    if (loop->due > CHUNK_WEIGHT / CHUNK) {
        chunk = (uint32_t)(CHUNK_WEIGHT / loop->due);
        chunk = chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk;
    }
    const uint32_t chunk_id = bhi_ir_constant(ir, type, chunk);
    const uint32_t runs =
        bhi_block_value(ir, outer, exit->op, g->type_bool, BHI_OPERANDS(first, bound));
    const uint32_t left = bhi_block_value(ir, outer, SpvOpISub, type,
                                          BHI_OPERANDS(up ? bound : first, up ? first : bound));
    const uint32_t more_than_chunk =
        bhi_block_value(ir, outer, SpvOpUGreaterThan, g->type_bool, BHI_OPERANDS(left, chunk_id));
    const uint32_t cut = bhi_block_value(ir, outer, SpvOpLogicalAnd, g->type_bool,
                                         BHI_OPERANDS(runs, more_than_chunk));
    const uint32_t far =
        bhi_block_value(ir, outer, up ? SpvOpIAdd : SpvOpISub, type, BHI_OPERANDS(first, chunk_id));
    const uint32_t limit =
        bhi_block_value(ir, outer, SpvOpSelect, type, BHI_OPERANDS(cut, far, bound));
    bhi_block_do(ir, outer, SpvOpLoopMerge,
                 BHI_OPERANDS(merge->label, outer_cont->label, SpvLoopControlMaskNone));
    bhi_block_do(ir, outer, SpvOpBranch, BHI_OPERANDS(inner->label));

    /* The loop now compares with the chunk's limit. */
    struct bhi_ins *branch = bhi_block_terminator(test);
    const uint32_t now = exit->compare->words[exit->side];
    struct bhi_ins *before = bhi_block_merge(test);
    branch->words[1] =
        bhi_block_value_before(ir, test, before ? before : branch,
                               exit->inverted ? bhi_comparison_negated(exit->op) : exit->op,
                               g->type_bool, BHI_OPERANDS(now, limit));
    bhi_block_retarget(ir, test, merge->label, end->label);

    /* IM to OC: what runs between two chunks. */
    const uint32_t more =
        bhi_block_value(ir, end, exit->op, g->type_bool, BHI_OPERANDS(now, bound));
    uint32_t amount = bhi_block_value(ir, end, SpvOpISub, g->type_uint,
                                      BHI_OPERANDS(up ? now : first, up ? first : now));
    amount = bhi_block_value(ir, end, SpvOpIAdd, g->type_uint,
                             BHI_OPERANDS(amount, bhi_ir_constant(ir, g->type_uint, 1)));
    if (loop->due > 1) {
        amount = bhi_block_value(ir, end, SpvOpIMul, g->type_uint,
                                 BHI_OPERANDS(amount, bhi_guard_weight(g, loop)));
    }
    const uint32_t due = bhi_guard_count(g, end, amount);
    bhi_guard_look(g, loop, end, due, look, aborted, reset, decide);
    bhi_block_do(ir, decide, SpvOpBranchConditional,
                 BHI_OPERANDS(more, outer_cont->label, merge->label));
    bhi_block_do(ir, outer_cont, SpvOpBranch, BHI_OPERANDS(outer->label));
    bhi_ir_set_name(ir, end->label, "bulkhead_chunk_end");
    bhi_ir_set_name(ir, limit, "bulkhead_chunk_limit");
}
