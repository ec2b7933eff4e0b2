#include "worker/guard/builtins.h"

#include "worker/guard/words.h"

#define SPIRV_1_4 0x00010400u

bool bhi_guard_in_interface(const struct bhi_guard *g, uint32_t variable) {
    for (const struct bhi_ins *ins = g->ir.sections[BHI_IR_ENTRY_POINTS].first; ins;
         ins = ins->next) {
        if (ins->words[2] == g->entry->id && bhi_guard_lists(ins, variable)) {
            return true;
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

uint32_t bhi_guard_replace_builtin(struct bhi_guard *g, uint32_t variable, const char *name) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t type = bhi_ir_definition(ir, bhi_ir_definition(ir, variable)->type)->words[3];
    const uint32_t pointer = bhi_ir_type_pointer(ir, SpvStorageClassPrivate, type);
    const uint32_t copy =
        bhi_ir_global(ir, SpvOpVariable, pointer, BHI_OPERANDS(SpvStorageClassPrivate));
    bhi_ir_set_name(ir, copy, name);
    if (ir->version >= SPIRV_1_4) {
        bhi_guard_add_to_compute(g, copy);
    }
    redirect(g, variable, copy);
    return copy;
}
