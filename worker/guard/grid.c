/* The number of workgroups, for drivers that do not know it: when a grid is dispatched in parts
 * (worker/vulkan/dispatch.h), the driver gives a kernel the size of a part. So the guard adds a
 * variable. At its beginning the kernel fills it from the built-in variable or, if a specialization
 * constant says so, from the guard's buffer. All reads of the built-in variable become reads of
 * this one. In a pipeline for grids that run whole, the compiler removes all of it. This is done
 * after the loops: a loop's bound that is a built-in variable is known not to change while the loop
 * runs. */
#include "worker/guard/state.h"

#include "worker/guard/words.h"

#define SPIRV_1_4 0x00010400u

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

/* Does the entry point list |variable|? */
static bool in_interface(const struct bhi_guard *g, uint32_t variable) {
    for (const struct bhi_ins *ins = g->ir.sections[BHI_IR_ENTRY_POINTS].first; ins;
         ins = ins->next) {
        /* If a word of the name equals the id, the kernel gets a copy that nothing reads. */
        for (uint32_t i = 4; ins->words[2] == g->entry->id && i < bhi_ins_length(ins); i++) {
            if (ins->words[i] == variable) {
                return true;
            }
        }
    }
    return false;
}

/* Returns the word of |ins| that holds the pointer that it reads through; 0 if it reads through
 * none. */
static uint32_t read_pointer(const struct bhi_ins *ins) {
    switch (bhi_ins_op(ins)) {
    case SpvOpLoad:
    case SpvOpAccessChain:
    case SpvOpInBoundsAccessChain:
    case SpvOpCopyObject:
        return 3;
    case SpvOpCopyMemory:
        return 2;
    default:
        return 0;
    }
}

/* Makes reads through |from|, and through pointers made from it, read through |to|. A definition
 * comes before its uses, also in the order of the blocks. */
static void redirect(struct bhi_guard *g, uint32_t from, uint32_t to) {
    struct bhi_ir *ir = &g->ir;
    uint8_t *private = bhi_ir_alloc(ir, ir->bound);
    for (struct bhi_ir_function *f = ir->first; f; f = f->next) {
        for (struct bhi_basic_block *block = f->first; block; block = block->next) {
            for (struct bhi_ins *ins = block->body.first; ins; ins = ins->next) {
                const uint32_t at = read_pointer(ins);
                if (at == 0 || (ins->words[at] != from && !private[ins->words[at]])) {
                    continue;
                }
                if (ins->words[at] == from) {
                    ins->words[at] = to;
                }
                if (bhi_ins_op(ins) != SpvOpLoad && bhi_ins_op(ins) != SpvOpCopyMemory) {
                    const uint32_t type = bhi_ir_definition(ir, ins->type)->words[3];
                    ins->type = bhi_ir_type_pointer(ir, SpvStorageClassPrivate, type);
                    ins->words[1] = ins->type;
                    private[ins->result] = 1;
                }
            }
        }
    }
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
    const uint32_t pointer = bhi_ir_type_pointer(ir, SpvStorageClassPrivate, type);
    const uint32_t copy =
        bhi_ir_global(ir, SpvOpVariable, pointer, BHI_OPERANDS(SpvStorageClassPrivate));
    bhi_ir_set_name(ir, copy, "bulkhead_groups");
    if (ir->version >= SPIRV_1_4) {
        bhi_guard_add_to_compute(g, copy);
    }
    redirect(g, variable->result, copy);
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
        } else if (g->options->in_parts && in_interface(g, ins->words[1])) {
            told = told ? told : add_constant(g);
            g->out->reads_grid = true;
            copy_variable(g, bhi_ir_definition(&g->ir, ins->words[1]), told);
        }
    }
}
