/* The number of workgroups, for drivers that do not know it: when a grid is dispatched in parts
 * (worker/vulkan/dispatch.h), the driver gives a kernel the size of a part. So the guard adds a
 * variable. At its beginning the kernel fills it from the built-in variable or, if a specialization
 * constant says so, from the guard's buffer. All reads of the built-in variable become reads of
 * this one. In a pipeline for grids that run whole, the compiler removes all of it. This is done
 * after the loops: a loop's bound that is a built-in variable is known not to change while the loop
 * runs. */
#include "worker/guard/builtins.h"
#include "worker/guard/words.h"

/* Returns a SpecId that neither the module nor the pipeline's values use. */
static uint32_t free_constant(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    uint32_t *given = bhi_ir_alloc(ir, g->options->constant_count * sizeof *given);
    for (uint32_t i = 0; i < g->options->constant_count; i++) {
        given[i] = g->options->constants[i].constant_id;
    }
    return bhi_ir_free_number(ir, SpvDecorationSpecId, given, g->options->constant_count);
}

/* Adds a boolean constant that is false unless a pipeline sets it. */
static uint32_t add_constant(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    g->out->grid_constant = free_constant(g);
    const uint32_t told = bhi_ir_global(ir, SpvOpSpecConstantFalse, g->type_bool, NULL, 0);
    bhi_ir_decorate(ir, SpvOpDecorate,
                    BHI_OPERANDS(told, SpvDecorationSpecId, g->out->grid_constant));
    bhi_ir_set_name(ir, told, "bulkhead_told");
    return told;
}

/* Fills |copy|, three values of type |part|, at the beginning of the kernel: with |variable|, or
 * with the guard's words if the constant |told| is true. */
static void fill(struct bhi_guard *g, uint32_t variable, uint32_t copy, uint32_t type,
                 uint32_t part, uint32_t told) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *block = g->entry->first;
    struct bhi_ins *at = bhi_block_after_variables(block);
    uint32_t counts[3];
    const uint32_t own =
        bhi_block_value_before(ir, block, at, SpvOpLoad, type, BHI_OPERANDS(variable));
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t member = bhi_ir_constant(ir, g->type_uint, BHI_WORD_GROUPS + i);
        const uint32_t pointer = bhi_block_value_before(
            ir, block, at, SpvOpAccessChain, g->word_pointer, BHI_OPERANDS(g->buffer, member));
        const uint32_t word =
            bhi_block_value_before(ir, block, at, SpvOpLoad, g->type_uint, BHI_OPERANDS(pointer));
        const uint32_t count =
            part == g->type_uint
                ? word
                : bhi_block_value_before(ir, block, at, SpvOpBitcast, part, BHI_OPERANDS(word));
        const uint32_t one = bhi_block_value_before(ir, block, at, SpvOpCompositeExtract, part,
                                                    BHI_OPERANDS(own, i));
        counts[i] = bhi_block_value_before(ir, block, at, SpvOpSelect, part,
                                           BHI_OPERANDS(told, count, one));
    }
    const uint32_t all =
        bhi_block_value_before(ir, block, at, SpvOpCompositeConstruct, type, counts, 3);
    bhi_block_do_before(ir, block, at, SpvOpStore, BHI_OPERANDS(copy, all));
}

static void copy_variable(struct bhi_guard *g, const struct bhi_ins *variable, uint32_t told) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t type = bhi_ir_definition(ir, variable->type)->words[3];
    const uint32_t part = bhi_ir_definition(ir, type)->words[2];
    const uint32_t copy = bhi_guard_replace_builtin(g, variable->result, "bulkhead_groups");
    fill(g, variable->result, copy, type, part, told);
}

void bhi_guard_grid(struct bhi_guard *g) {
    uint32_t told = 0;
    for (const struct bhi_ins *ins = g->ir.sections[BHI_IR_DECORATIONS].first; ins;
         ins = ins->next) {
        const SpvOp op = bhi_ins_op(ins);
        /* OpDecorate has target, decoration, value; OpMemberDecorate has the member after the
         * target. */
        const uint32_t at = op == SpvOpDecorate ? 2 : op == SpvOpMemberDecorate ? 3 : 0;
        if (at == 0 || ins->words[at] != SpvDecorationBuiltIn ||
            ins->words[at + 1] != SpvBuiltInNumWorkgroups) {
            continue;
        }
        if (op == SpvOpMemberDecorate) { /* no compiler writes this */
            g->out->whole_grid = true;
        } else if (g->options->in_parts && bhi_guard_in_interface(g, ins->words[1])) {
            told = told ? told : add_constant(g);
            g->out->reads_grid = true;
            copy_variable(g, bhi_ir_definition(&g->ir, ins->words[1]), told);
        }
    }
}
