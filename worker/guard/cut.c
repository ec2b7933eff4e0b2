/* llvmpipe before 25 silently ends every loop after the loops of one SIMD group have run 65,535
 * rounds in all. A kernel cannot test for this in the loop (the compiler knows that a loop is left
 * only by its exits), so rounds are counted. Each loop that may be long counts its rounds. After
 * the loop, the highest count of any lane of the group is added to a cell of workgroup memory that
 * belongs to the group alone. Lanes of one group may take different paths, with different loops:
 * all of them are added to the same cell. When the cell comes near the limit, the flag is set.
 *
 *   H: n = phi [0, outside; n1, latch];  n1 = n + 1
 *   M: phis;  cell += subgroupMax(n1 * weight + skipped + 1);  cell >= LIMIT? ──▶ F: flags = CUT
 *       └──▶ the rest of M
 *
 * The same is done before a return in a loop. Where a loop looks at the abort word, it also checks
 * the cell and the rounds of the loops around it: code after a loop that was cut short runs with
 * values that were never computed, so the flag must be set before. A loop that is left alone counts
 * in its parent's weight. If the driver has unrolled it, this count is higher than the driver's:
 * the flag may be set too early, never too late. The driver does not skip a branch that no lane takes:
 * a loop there goes round once, which nobody adds to the cell. So a round of a loop weighs as much as
 * one of it and of each loop in it that a round may skip; others count once (weigh_untaken in loops.c).
 */
#include "worker/guard/cut.h"

#include "worker/guard/cfg.h"
#include "worker/guard/state.h"
#include "worker/guard/words.h"

#include <bulkhead/bulkhead.h>
#include <string.h>

/* 65,535, less what may pass between two looks, less what the guard itself adds to a loop of 1024
 * iterations (two rounds, of which one is counted), less the driver's own loop that zeroes 32 KiB
 * of workgroup memory, 16 bytes a round. */
#define CUT_LIMIT (65535u - BHI_GUARD_LIMIT - 1024u - 2048u)
#define SPIRV_1_3 0x00010300u
#define SPIRV_1_4 0x00010400u
/* The smallest number of lanes in a group. */
#define LANES 4u

static uint32_t capped(uint64_t count) {
    return count < CUT_LIMIT ? (uint32_t)count : CUT_LIMIT;
}

/* Makes a cell for each possible group. Once for each module. */
static void add_cells(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    uint32_t size[3];
    if (g->cells != 0) {
        return;
    }
    if (!bhi_module_local_size(&g->module, size, ir->error)) {
        bhi_ir_escape(ir);
    }
    const uint64_t rows = ((uint64_t)size[0] + LANES - 1) / LANES;
    const uint64_t groups = rows * size[1] * size[2];
    if (size[0] > 65536 || size[1] > 65536 || size[2] > 65536 || groups > 65536) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_LIMIT,
                      "a workgroup of %u x %u x %u is too large for the guard; make it smaller",
                      size[0], size[1], size[2]);
    }
    ir->version = ir->version < SPIRV_1_3 ? SPIRV_1_3 : ir->version;
    bhi_ir_capability(ir, SpvCapabilityGroupNonUniform);
    bhi_ir_capability(ir, SpvCapabilityGroupNonUniformArithmetic);
    g->out->shared_bytes += groups * sizeof(uint32_t);
    const uint32_t array = bhi_ir_global(
        ir, SpvOpTypeArray, 0,
        BHI_OPERANDS(g->type_uint, bhi_ir_constant(ir, g->type_uint, (uint32_t)groups)));
    g->cells =
        bhi_ir_global(ir, SpvOpVariable, bhi_ir_type_pointer(ir, SpvStorageClassWorkgroup, array),
                      BHI_OPERANDS(SpvStorageClassWorkgroup));
    g->cell_pointer = bhi_ir_type_pointer(ir, SpvStorageClassWorkgroup, g->type_uint);
    g->group = bhi_ir_builtin(ir, SpvBuiltInSubgroupId,
                              bhi_ir_type_pointer(ir, SpvStorageClassInput, g->type_uint),
                              g->type_uint, "bulkhead_group"); /* not one of a signed integer */
    bhi_guard_add_to_compute(g, g->group);
    bhi_ir_set_name(ir, g->cells, "bulkhead_rounds");
    if (ir->version >= SPIRV_1_4) {
        bhi_guard_add_to_compute(g, g->cells);
    }
}

static uint32_t cell(struct bhi_guard *g, struct bhi_basic_block *block, struct bhi_ins *at) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t group =
        bhi_block_value_before(ir, block, at, SpvOpLoad, g->type_uint, BHI_OPERANDS(g->group));
    return bhi_block_value_before(ir, block, at, SpvOpAccessChain, g->cell_pointer,
                                  BHI_OPERANDS(g->cells, group));
}

static void flag_cut(struct bhi_guard *g, struct bhi_basic_block *block, struct bhi_ins *at) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t pointer = bhi_block_value_before(
        ir, block, at, SpvOpAccessChain, g->word_pointer,
        BHI_OPERANDS(g->buffer, bhi_ir_constant(ir, g->type_uint, BHI_WORD_FLAGS)));
    bhi_block_do_before(ir, block, at, SpvOpStore,
                        BHI_OPERANDS(pointer, bhi_ir_constant(ir, g->type_uint, BHI_GUARD_CUT)));
}

/* Every access of a cell is volatile: otherwise the compiler assumes that a store of another lane,
 * which takes another path, cannot be seen here. */
static uint32_t load_cell(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t where) {
    return bhi_block_value(&g->ir, block, SpvOpLoad, g->type_uint,
                           BHI_OPERANDS(where, SpvMemoryAccessVolatileMask));
}

/* Ends |block|: sets the flag if |rounds| (an id) are too many, then goes on to |rest|. */
static void flag_where(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t rounds,
                       struct bhi_basic_block *rest) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *flag = bhi_block_new(ir, block);
    const uint32_t cut =
        bhi_block_value(ir, block, SpvOpUGreaterThanEqual, g->type_bool,
                        BHI_OPERANDS(rounds, bhi_ir_constant(ir, g->type_uint, CUT_LIMIT)));
    bhi_block_do(ir, block, SpvOpSelectionMerge,
                 BHI_OPERANDS(rest->label, SpvSelectionControlMaskNone));
    bhi_block_do(ir, block, SpvOpBranchConditional, BHI_OPERANDS(cut, flag->label, rest->label));
    flag_cut(g, flag, NULL);
    bhi_block_do(ir, flag, SpvOpBranch, BHI_OPERANDS(rest->label));
}

/* Adds |rounds| (an id) before |at| in |block|, which is split there. */
static void account(struct bhi_guard *g, struct bhi_basic_block *block, struct bhi_ins *at,
                    uint32_t rounds) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t subgroup = bhi_ir_constant(ir, g->type_uint, SpvScopeSubgroup);
    struct bhi_basic_block *rest = bhi_block_new(ir, block);
    bhi_block_move_tail(block, at, rest);
    bhi_block_took_over(ir, rest, block->label);

    const uint32_t most = bhi_block_value(ir, block, SpvOpGroupNonUniformUMax, g->type_uint,
                                          BHI_OPERANDS(subgroup, SpvGroupOperationReduce, rounds));
    const uint32_t where = cell(g, block, NULL);
    const uint32_t before = load_cell(g, block, where);
    const uint32_t after =
        bhi_block_value(ir, block, SpvOpIAdd, g->type_uint, BHI_OPERANDS(before, most));
    bhi_block_do(ir, block, SpvOpStore, BHI_OPERANDS(where, after, SpvMemoryAccessVolatileMask));
    flag_where(g, block, after, rest);
}

/* Is |block| among the first |count| predecessors of |header|? It may have two edges to it. */
static bool is_known(const struct bhi_basic_block *header, uint32_t count,
                     const struct bhi_basic_block *block) {
    for (uint32_t i = 0; i < count; i++) {
        if (header->preds[i] == block) {
            return true;
        }
    }
    return false;
}

static bool leads_to(struct bhi_ir *ir, const struct bhi_basic_block *block, uint32_t label) {
    const uint32_t *labels;
    const uint32_t count = bhi_block_successors(ir, block, &labels);
    for (uint32_t i = 0; i < count; i++) {
        if (labels[i] == label) {
            return true;
        }
    }
    return false;
}

/* Returns n1: the number of this round, from 1. */
static uint32_t count_rounds(struct bhi_guard *g, const struct bhi_loop *loop) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *header = loop->header;
    const struct bhi_ir_function *f = header->function;
    const uint32_t rounds = bhi_ir_id(ir);
    uint32_t count = 0, others = 0;
    for (uint32_t i = 0; i < f->unreachable_count; i++) { /* the phi has entries for these, too */
        others += leads_to(ir, f->unreachable[i], header->label);
    }
    uint32_t *operands = bhi_ir_alloc(ir, 2 * (header->pred_count + others) * sizeof *operands);
    for (uint32_t i = 0; i < header->pred_count; i++) {
        if (!is_known(header, i, header->preds[i])) {
            operands[count++] = header->preds[i] == loop->latch ? rounds : g->zero;
            operands[count++] = header->preds[i]->label;
        }
    }
    for (uint32_t i = 0; i < f->unreachable_count && others > 0; i++) {
        if (leads_to(ir, f->unreachable[i], header->label)) {
            operands[count++] = g->zero;
            operands[count++] = f->unreachable[i]->label;
        }
    }
    const uint32_t phi = bhi_block_value_before(ir, header, header->body.first, SpvOpPhi,
                                                g->type_uint, operands, count);
    struct bhi_ins *next = bhi_ins_new(ir, SpvOpIAdd, g->type_uint, rounds,
                                       BHI_OPERANDS(phi, bhi_ir_constant(ir, g->type_uint, 1)));
    next->block = header;
    bhi_ins_insert(&header->body, bhi_block_after_phis(header), next);
    return rounds;
}

/* Computes n1 * weight + skipped + 1 before |at|. */
static uint32_t weighed(struct bhi_guard *g, const struct bhi_loop *loop,
                        struct bhi_basic_block *block, struct bhi_ins *at) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t more = capped(loop->skipped) + 1;
    uint32_t rounds = loop->header->rounds;
    if (loop->weight > 1) {
        rounds = bhi_block_value_before(
            ir, block, at, SpvOpIMul, g->type_uint,
            BHI_OPERANDS(rounds, bhi_ir_constant(ir, g->type_uint, capped(loop->weight))));
    }
    return bhi_block_value_before(ir, block, at, SpvOpIAdd, g->type_uint,
                                  BHI_OPERANDS(rounds, bhi_ir_constant(ir, g->type_uint, more)));
}

/* Returns the merge block. If that is another loop's header, returns a new block before it, because
 * code in the header runs more than once. */
static struct bhi_basic_block *behind(struct bhi_guard *g, struct bhi_loop *loop) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *merge = loop->merge;
    const struct bhi_loop *next = merge->loop;
    if (!next || next->header != merge) {
        return merge;
    }
    struct bhi_basic_block *before = bhi_block_new(ir, merge->prev);
    bhi_block_merge(loop->header)->words[1] = before->label;
    for (struct bhi_ins *phi = merge->body.first; phi; phi = phi->next) {
        if (bhi_ins_op(phi) == SpvOpPhi) {
            bhi_phi_split(ir, phi, before, next->latch->label);
        }
    }
    for (struct bhi_basic_block *b = merge->function->first; b; b = b->next) {
        if (b != next->latch && b != before) {
            bhi_block_retarget(ir, b, merge->label, before->label);
        }
    }
    bhi_block_do(ir, before, SpvOpBranch, BHI_OPERANDS(merge->label));
    return before;
}

/* Computes before |at| what |loop| and the loops around it have counted so far; 0: nothing. */
static uint32_t sum_of_rounds(struct bhi_guard *g, const struct bhi_loop *loop,
                              struct bhi_basic_block *block, struct bhi_ins *at) {
    uint32_t sum = 0;
    for (; loop; loop = loop->parent) {
        if (loop->header->rounds != 0) {
            const uint32_t rounds = weighed(g, loop, block, at);
            sum = sum == 0 ? rounds
                           : bhi_block_value_before(&g->ir, block, at, SpvOpIAdd, g->type_uint,
                                                    BHI_OPERANDS(sum, rounds));
        }
    }
    return sum;
}

struct bhi_basic_block *bhi_guard_cut_look(struct bhi_guard *g, const struct bhi_loop *loop,
                                           struct bhi_basic_block *block) {
    struct bhi_ir *ir = &g->ir;
    if (loop->header->rounds == 0) {
        return block;
    }
    struct bhi_basic_block *rest = bhi_block_new(ir, block);
    const uint32_t before = load_cell(g, block, cell(g, block, NULL));
    const uint32_t rounds = sum_of_rounds(g, loop, block, NULL);
    const uint32_t after =
        bhi_block_value(ir, block, SpvOpIAdd, g->type_uint, BHI_OPERANDS(before, rounds));
    flag_where(g, block, after, rest);
    return rest;
}

bool bhi_guard_cut_loops(struct bhi_guard *g, struct bhi_ir_function *f) {
    bool any = false;
    for (uint32_t i = 0; i < f->loop_count; i++) {
        if (f->loops[i]->fate != BHI_LOOP_ALONE) {
            add_cells(g);
            f->loops[i]->header->rounds = count_rounds(g, f->loops[i]);
            any = true;
        }
    }
    for (uint32_t i = 0; i < f->reachable && any; i++) {
        struct bhi_basic_block *block = f->rpo[i];
        struct bhi_ins *last = bhi_block_terminator(block);
        if (bhi_ins_op(last) == SpvOpReturn || bhi_ins_op(last) == SpvOpReturnValue) {
            const uint32_t rounds = sum_of_rounds(g, block->loop, block, last);
            if (rounds != 0) {
                account(g, block, last, rounds);
            }
        }
    }
    for (uint32_t i = f->loop_count; i-- > 0;) {
        struct bhi_loop *loop = f->loops[i];
        if (loop->fate != BHI_LOOP_ALONE && loop->merge->order != 0) {
            struct bhi_basic_block *block = behind(g, loop);
            struct bhi_ins *at = bhi_block_after_phis(block);
            account(g, block, at, weighed(g, loop, block, at));
        }
    }
    return any;
}

void bhi_guard_cut_start(struct bhi_guard *g, struct bhi_basic_block *block, struct bhi_ins *at) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t cost = capped(g->entry->cost);
    if (cost == CUT_LIMIT) {
        flag_cut(g, block, at);
    }
    if (g->cells != 0) {
        const uint32_t where = cell(g, block, at);
        bhi_block_do_before(ir, block, at, SpvOpStore,
                            BHI_OPERANDS(where, bhi_ir_constant(ir, g->type_uint, cost),
                                         SpvMemoryAccessVolatileMask));
    }
}
