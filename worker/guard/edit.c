/* Editing a module: instructions, blocks, edges. */
#include "worker/guard/ir.h"

#include <string.h>

uint32_t bhi_ir_id(struct bhi_ir *ir) {
    if (ir->bound == ir->capacity) {
        const uint32_t capacity = ir->capacity + ir->capacity / 2;
        struct bhi_ins **definitions = bhi_ir_alloc(ir, capacity * sizeof *definitions);
        struct bhi_basic_block **blocks = bhi_ir_alloc(ir, capacity * sizeof *blocks);
        memcpy(definitions, ir->definitions, ir->bound * sizeof *definitions);
        memcpy(blocks, ir->blocks, ir->bound * sizeof *blocks);
        ir->definitions = definitions;
        ir->blocks = blocks;
        ir->capacity = capacity;
    }
    return ir->bound++;
}

struct bhi_ins *bhi_ins_new(struct bhi_ir *ir, SpvOp op, uint32_t type, uint32_t result,
                            const uint32_t *operands, size_t count) {
    const size_t first = 1u + (type != 0) + (result != 0);
    struct bhi_ins *ins = bhi_ir_alloc(ir, sizeof *ins);
    ins->type = type;
    ins->result = result;
    ins->words = bhi_ir_alloc(ir, (first + count) * sizeof *ins->words);
    ins->words[0] = (uint32_t)(first + count) << SpvWordCountShift | (uint32_t)op;
    if (type != 0) {
        ins->words[1] = type;
    }
    if (result != 0) {
        ins->words[first - 1] = result;
        ir->definitions[result] = ins;
    }
    if (count > 0) {
        memcpy(&ins->words[first], operands, count * sizeof *operands);
    }
    return ins;
}

void bhi_ins_set(struct bhi_ir *ir, struct bhi_ins *ins, const uint32_t *operands, size_t count) {
    const size_t first = 1u + (ins->type != 0) + (ins->result != 0);
    uint32_t *words = bhi_ir_alloc(ir, (first + count) * sizeof *words);
    memcpy(words, ins->words, first * sizeof *words);
    if (count > 0) {
        memcpy(&words[first], operands, count * sizeof *operands);
    }
    words[0] = (uint32_t)(first + count) << SpvWordCountShift | (uint32_t)bhi_ins_op(ins);
    ins->words = words;
}

void bhi_ins_remove(struct bhi_ins_list *list, struct bhi_ins *ins) {
    *(ins->prev ? &ins->prev->next : &list->first) = ins->next;
    *(ins->next ? &ins->next->prev : &list->last) = ins->prev;
    ins->prev = ins->next = NULL;
    ins->block = NULL;
}

void bhi_block_do_before(struct bhi_ir *ir, struct bhi_basic_block *block, struct bhi_ins *at,
                         SpvOp op, const uint32_t *operands, size_t count) {
    struct bhi_ins *ins = bhi_ins_new(ir, op, 0, 0, operands, count);
    ins->block = block;
    bhi_ins_insert(&block->body, at, ins);
}

uint32_t bhi_block_value_before(struct bhi_ir *ir, struct bhi_basic_block *block,
                                struct bhi_ins *at, SpvOp op, uint32_t type,
                                const uint32_t *operands, size_t count) {
    struct bhi_ins *ins = bhi_ins_new(ir, op, type, bhi_ir_id(ir), operands, count);
    ins->block = block;
    bhi_ins_insert(&block->body, at, ins);
    return ins->result;
}

void bhi_block_do(struct bhi_ir *ir, struct bhi_basic_block *block, SpvOp op,
                  const uint32_t *operands, size_t count) {
    bhi_block_do_before(ir, block, NULL, op, operands, count);
}

uint32_t bhi_block_value(struct bhi_ir *ir, struct bhi_basic_block *block, SpvOp op, uint32_t type,
                         const uint32_t *operands, size_t count) {
    return bhi_block_value_before(ir, block, NULL, op, type, operands, count);
}

struct bhi_basic_block *bhi_block_new(struct bhi_ir *ir, struct bhi_basic_block *at) {
    struct bhi_basic_block *block = bhi_ir_alloc(ir, sizeof *block);
    block->label = bhi_ir_id(ir);
    block->function = at->function;
    ir->blocks[block->label] = block;
    block->prev = at;
    block->next = at->next;
    at->next = block;
    *(block->next ? &block->next->prev : &block->function->last) = block;
    return block;
}

void bhi_block_move_tail(struct bhi_basic_block *block, struct bhi_ins *from,
                         struct bhi_basic_block *to) {
    while (from) {
        struct bhi_ins *next = from->next;
        bhi_ins_remove(&block->body, from);
        from->block = to;
        bhi_ins_append(&to->body, from);
        from = next;
    }
}

struct bhi_ins *bhi_block_merge(const struct bhi_basic_block *block) {
    /* It is the second to last instruction, unless an OpLine stands between. */
    for (struct bhi_ins *ins = block->body.last; ins; ins = ins->prev) {
        const SpvOp op = bhi_ins_op(ins);
        if (op == SpvOpLoopMerge || op == SpvOpSelectionMerge) {
            return ins;
        }
        if (ins != block->body.last && op != SpvOpLine && op != SpvOpNoLine) {
            return NULL;
        }
    }
    return NULL;
}

struct bhi_ins *bhi_block_after_phis(const struct bhi_basic_block *block) {
    struct bhi_ins *after = block->body.first;
    for (struct bhi_ins *ins = after; ins; ins = ins->next) {
        const SpvOp op = bhi_ins_op(ins);
        if (op == SpvOpPhi) {
            after = ins->next;
        } else if (op != SpvOpLine && op != SpvOpNoLine) {
            break;
        }
    }
    return after;
}

struct bhi_ins *bhi_block_after_variables(const struct bhi_basic_block *block) {
    struct bhi_ins *after = block->body.first;
    for (struct bhi_ins *ins = after; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpVariable) { /* they come first, with lines between them */
            after = ins->next;
        }
    }
    return after;
}

/* Returns the number of 32-bit words of a literal in an OpSwitch. */
static uint32_t literal_words(const struct bhi_ir *ir, uint32_t selector) {
    const struct bhi_ins *value = bhi_ir_definition(ir, selector);
    const struct bhi_ins *type = value ? bhi_ir_definition(ir, value->type) : NULL;
    return type && bhi_ins_op(type) == SpvOpTypeInt && type->words[2] > 32 ? 2 : 1;
}

/* Returns the word of the terminator that has target |number|, or 0 if it has fewer targets. */
static uint32_t target_word(const struct bhi_ir *ir, const struct bhi_ins *last, uint32_t number) {
    uint32_t word = 0;
    switch (bhi_ins_op(last)) {
    case SpvOpBranch:
        word = number == 0 ? 1 : 0;
        break;
    case SpvOpBranchConditional:
        word = number < 2 ? 2 + number : 0;
        break;
    case SpvOpSwitch:
        word = 2 + number * (literal_words(ir, last->words[1]) + 1);
        break;
    default:
        break;
    }
    return word < bhi_ins_length(last) ? word : 0;
}

uint32_t bhi_block_successors(struct bhi_ir *ir, const struct bhi_basic_block *block,
                              const uint32_t **out_labels) {
    const struct bhi_ins *last = bhi_block_terminator(block);
    if (bhi_ins_op(last) != SpvOpSwitch) { /* its targets follow each other */
        *out_labels = &last->words[target_word(ir, last, 0)];
        return target_word(ir, last, 1) != 0 ? 2 : target_word(ir, last, 0) != 0 ? 1 : 0;
    }
    uint32_t *labels = bhi_ir_alloc(ir, bhi_ins_length(last) * sizeof *labels), count = 0;
    for (uint32_t word; (word = target_word(ir, last, count)) != 0; count++) {
        labels[count] = last->words[word];
    }
    *out_labels = labels;
    return count;
}

void bhi_block_retarget(struct bhi_ir *ir, struct bhi_basic_block *block, uint32_t from,
                        uint32_t to) {
    struct bhi_ins *last = bhi_block_terminator(block);
    for (uint32_t number = 0, word; (word = target_word(ir, last, number)) != 0; number++) {
        if (last->words[word] == from) {
            last->words[word] = to;
        }
    }
}

struct bhi_ins *bhi_phi_split(struct bhi_ir *ir, struct bhi_ins *phi,
                              struct bhi_basic_block *before, uint32_t latch) {
    const uint32_t length = bhi_ins_length(phi);
    uint32_t *outside = bhi_ir_alloc(ir, length * sizeof *outside), count = 0, around = 0;
    for (uint32_t i = 3; i + 1 < length; i += 2) {
        if (phi->words[i + 1] == latch) {
            around = phi->words[i];
        } else {
            outside[count++] = phi->words[i];
            outside[count++] = phi->words[i + 1];
        }
    }
    const uint32_t first = bhi_block_value(ir, before, SpvOpPhi, phi->type, outside, count);
    bhi_ins_set(ir, phi, BHI_OPERANDS(first, before->label, around, latch));
    return bhi_ir_definition(ir, first);
}

void bhi_block_rename_pred(struct bhi_basic_block *block, uint32_t from, uint32_t to) {
    for (struct bhi_ins *ins = block->body.first; ins; ins = ins->next) {
        const SpvOp op = bhi_ins_op(ins);
        if (op == SpvOpPhi) {
            for (uint32_t i = 4; i < bhi_ins_length(ins); i += 2) {
                if (ins->words[i] == from) {
                    ins->words[i] = to;
                }
            }
        } else if (op != SpvOpLine && op != SpvOpNoLine) {
            break;
        }
    }
}

void bhi_block_took_over(struct bhi_ir *ir, struct bhi_basic_block *block, uint32_t from) {
    const uint32_t *labels;
    const uint32_t count = bhi_block_successors(ir, block, &labels);
    for (uint32_t i = 0; i < count; i++) {
        struct bhi_basic_block *successor = bhi_ir_block(ir, labels[i]);
        if (successor) {
            bhi_block_rename_pred(successor, from, block->label);
        }
    }
}
