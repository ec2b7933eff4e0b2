/* Clamps indices that are known only when the kernel runs, where nothing else checks them: on a
 * driver that runs on a processor, an index out of range in workgroup memory corrupts memory.
 * Buffers have robustBufferAccess. If an index cannot be clamped, the kernel is refused. */
#include "worker/guard/state.h"

#include "worker/guard/values.h"

#include <bulkhead/bulkhead.h>
#include <string.h>

#define CACHED           32u
#define MAX_TYPE_NESTING 64u

struct clamps {
    struct bhi_guard *g;
    struct bhi_basic_block *block;
    struct bhi_ins *at; /* the instruction that is being made safe */
    bool variable_pointers, non_uniform;
    /* Constants made last. Looking one up in the module means walking through all globals. */
    struct {
        uint32_t type, id;
        uint64_t value;
    } cache[CACHED];
    uint32_t next;
};

static struct bhi_ins *definition(const struct clamps *c, uint32_t id) {
    return bhi_ir_definition(&c->g->ir, id);
}

static struct bhi_ins *type_of(const struct clamps *c, uint32_t id) {
    const struct bhi_ins *ins = definition(c, id);
    struct bhi_ins *type = ins ? definition(c, ins->type) : NULL;
    if (!type) {
        BHI_IR_REFUSE(&c->g->ir, BH_REASON_KERNEL_RULE, "%%%u has no type", id);
    }
    return type;
}

static uint32_t constant(struct clamps *c, const struct bhi_ins *type, uint64_t value) {
    for (uint32_t i = 0; i < CACHED; i++) {
        if (c->cache[i].id != 0 && c->cache[i].type == type->result && c->cache[i].value == value) {
            return c->cache[i].id;
        }
    }
    const uint32_t words[2] = {(uint32_t)value, (uint32_t)(value >> 32)};
    const uint32_t id = type->words[2] > 32
                            ? bhi_ir_global(&c->g->ir, SpvOpConstant, type->result, words, 2)
                            : bhi_ir_constant(&c->g->ir, type->result, (uint32_t)value);
    c->cache[c->next].type = type->result;
    c->cache[c->next].id = id;
    c->cache[c->next].value = value;
    c->next = (c->next + 1) % CACHED;
    return id;
}

/* Replaces operand |word| by a value that is less than |length|, unless it is already a constant
 * below it. */
static void clamp(struct clamps *c, uint32_t word, uint64_t length) {
    struct bhi_ir *ir = &c->g->ir;
    uint32_t index = c->at->words[word];
    struct bhi_ins *type = type_of(c, index);
    const uint32_t bits = bhi_ins_op(type) == SpvOpTypeInt ? type->words[2] : 0;
    uint64_t value;
    if (bits == 0) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE, "%s: the index %%%u is not an integer",
                      bhi_ir_describe(ir, bhi_ins_op(c->at), c->at->result), index);
    }
    const struct bhi_ins *from = definition(c, index);
    if (!from->block && bhi_constant_of(&c->g->ir, &c->g->module, index, &value) &&
        value < length && value >> (bits - 1) == 0) {
        return;
    }
    if (bits < 32) { /* an index counts as signed, whatever its type */
        index = bhi_block_value_before(ir, c->block, c->at, SpvOpSConvert, c->g->type_uint,
                                       BHI_OPERANDS(index));
        type = definition(c, c->g->type_uint);
    }
    const uint64_t last = length - 1 < INT32_MAX ? length - 1 : INT32_MAX;
    const uint32_t limit = constant(c, type, last);
    const uint32_t inside = bhi_block_value_before(ir, c->block, c->at, SpvOpULessThanEqual,
                                                   c->g->type_bool, BHI_OPERANDS(index, limit));
    const bool varies =
        c->non_uniform && bhi_ir_is_decorated(ir, c->at->words[word], SpvDecorationNonUniform);
    c->at->words[word] = bhi_block_value_before(ir, c->block, c->at, SpvOpSelect, type->result,
                                                BHI_OPERANDS(inside, index, limit));
    if (varies) { /* like the index that it replaces */
        bhi_ir_decorate(ir, SpvOpDecorate,
                        BHI_OPERANDS(c->at->words[word], SpvDecorationNonUniform));
    }
    c->g->out->clamps++;
}

static uint64_t array_length(struct clamps *c, const struct bhi_ins *array) {
    uint64_t length;
    if (!bhi_constant_of(&c->g->ir, &c->g->module, array->words[3], &length) || length == 0) {
        BHI_IR_REFUSE(&c->g->ir, BH_REASON_KERNEL_RULE,
                      "the length of %s is not a constant that can be computed here: write it as a "
                      "literal or a specialization constant",
                      bhi_ir_describe(&c->g->ir, SpvOpTypeArray, array->result));
    }
    return length;
}

/* Is |type| what a descriptor points to? An array of these is an array of descriptors. */
static bool is_block(const struct clamps *c, uint32_t type) {
    return bhi_ir_is_decorated(&c->g->ir, type, SpvDecorationBlock) ||
           bhi_ir_is_decorated(&c->g->ir, type, SpvDecorationBufferBlock);
}

static bool in_buffers(uint32_t class) {
    return class == SpvStorageClassStorageBuffer || class == SpvStorageClassUniform;
}

/* Clamps the indices from |word| on, which lead into a pointee of |type|. */
static void clamp_indices(struct clamps *c, uint32_t class, uint32_t type, uint32_t word) {
    struct bhi_ir *ir = &c->g->ir;
    const uint32_t length = bhi_ins_length(c->at);
    const bool descriptors = in_buffers(class);
    for (bool first = true; word < length; word++, first = false) {
        const struct bhi_ins *ins = definition(c, type);
        const SpvOp op = ins ? bhi_ins_op(ins) : SpvOpNop;
        uint64_t member;
        if (op == SpvOpTypeStruct) {
            if (!bhi_constant_of(&c->g->ir, &c->g->module, c->at->words[word], &member) ||
                member + 2 >= bhi_ins_length(ins)) {
                BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE, "%s: a member's number is not a constant",
                              bhi_ir_describe(ir, bhi_ins_op(c->at), c->at->result));
            }
            type = ins->words[2 + member];
            if (descriptors) {
                return; /* the other indices stay inside the buffer, which the driver checks */
            }
            continue;
        }
        if (op != SpvOpTypeArray && op != SpvOpTypeRuntimeArray && op != SpvOpTypeVector &&
            op != SpvOpTypeMatrix) {
            return;
        }
        if (descriptors && (!first || op == SpvOpTypeVector || op == SpvOpTypeMatrix ||
                            !is_block(c, ins->words[2]))) {
            return;
        }
        if (op == SpvOpTypeRuntimeArray) {
            BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                          "%s: an index into an array of unknown length outside of a buffer cannot "
                          "be bounded: give the array a length",
                          bhi_ir_describe(ir, bhi_ins_op(c->at), c->at->result));
        }
        clamp(c, word, op == SpvOpTypeArray ? array_length(c, ins) : ins->words[3]);
        type = ins->words[2];
    }
}

static void clamp_pointer(struct clamps *c) {
    struct bhi_ir *ir = &c->g->ir;
    const struct bhi_ins *pointer = type_of(c, c->at->words[3]);
    const SpvOp op = bhi_ins_op(c->at);
    if (c->at->words[3] == c->g->buffer) {
        return; /* the guard made it */
    }
    if (bhi_ins_op(pointer) != SpvOpTypePointer) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE, "%s: its base is not a pointer",
                      bhi_ir_describe(ir, op, c->at->result));
    }
    const uint32_t class = pointer->words[2], pointee = pointer->words[3];
    if (op == SpvOpPtrAccessChain || op == SpvOpInBoundsPtrAccessChain) {
        /* Inside a buffer the driver checks. */
        const struct bhi_ins *to = definition(c, pointee);
        const SpvOp kind = to ? bhi_ins_op(to) : SpvOpNop;
        const bool array = kind == SpvOpTypeArray || kind == SpvOpTypeRuntimeArray;
        if (!in_buffers(class) || is_block(c, pointee) || (array && is_block(c, to->words[2]))) {
            BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                          "%s: pointer arithmetic outside of a buffer cannot be bounded: index the "
                          "variable itself (OpAccessChain), or mark the kernel trusted",
                          bhi_ir_describe(ir, op, c->at->result));
        }
        return;
    }
    clamp_indices(c, class, pointee, 4);
}

static void clamp_vector(struct clamps *c, uint32_t word) {
    const struct bhi_ins *vector = type_of(c, c->at->words[3]);
    if (bhi_ins_op(vector) == SpvOpTypeVector) {
        clamp(c, word, vector->words[3]);
    }
}

static bool contains_pointer(const struct clamps *c, uint32_t type, unsigned depth) {
    const struct bhi_ins *ins = definition(c, type);
    if (!ins || depth > MAX_TYPE_NESTING) {
        return ins;
    }
    switch (bhi_ins_op(ins)) {
    case SpvOpTypePointer:
        return true;
    case SpvOpTypeArray:
        return contains_pointer(c, ins->words[2], depth + 1);
    case SpvOpTypeStruct:
        for (uint32_t i = 2; i < bhi_ins_length(ins); i++) {
            if (contains_pointer(c, ins->words[i], depth + 1)) {
                return true;
            }
        }
        return false;
    default:
        return false;
    }
}

/* Refuses pointers that may be invalid: null, undefined, or loaded from a variable that may not
 * have been stored to. */
static void refuse_wild_pointers(const struct clamps *c, const struct bhi_ins *ins) {
    struct bhi_ir *ir = &c->g->ir;
    const SpvOp op = bhi_ins_op(ins);
    uint32_t type = ins->type;
    if (op == SpvOpVariable) {
        const struct bhi_ins *pointer = definition(c, ins->type);
        type = pointer ? pointer->words[3] : 0;
    } else if (op != SpvOpConstantNull && op != SpvOpUndef) {
        return;
    }
    if (contains_pointer(c, type, 0)) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                      "%s: a pointer that may be null or undefined cannot be bounded: index the "
                      "variable itself, or mark the kernel trusted",
                      bhi_ir_describe(ir, op, ins->result));
    }
}

static void refuse_from_workgroup(const struct clamps *c, uint32_t pointer) {
    struct bhi_ir *ir = &c->g->ir;
    const struct bhi_ins *type = type_of(c, pointer);
    if (bhi_ins_op(type) == SpvOpTypePointer && !in_buffers(type->words[2])) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                      "%s: a cooperative matrix outside of a buffer cannot be bounded: load it "
                      "from a buffer, or mark the kernel trusted",
                      bhi_ir_describe(ir, bhi_ins_op(c->at), c->at->result));
    }
}

static void visit(struct clamps *c) {
    switch ((uint32_t)bhi_ins_op(c->at)) {
    case SpvOpAccessChain:
    case SpvOpInBoundsAccessChain:
    case SpvOpPtrAccessChain:
    case SpvOpInBoundsPtrAccessChain:
        clamp_pointer(c);
        break;
    case SpvOpVectorExtractDynamic:
        clamp_vector(c, 4);
        break;
    case SpvOpVectorInsertDynamic:
        clamp_vector(c, 5);
        break;
    case SpvOpCooperativeMatrixLoadNV:
    case 4457: /* OpCooperativeMatrixLoadKHR */
        refuse_from_workgroup(c, c->at->words[3]);
        break;
    case SpvOpCooperativeMatrixStoreNV:
    case 4458: /* OpCooperativeMatrixStoreKHR */
        refuse_from_workgroup(c, c->at->words[1]);
        break;
    default:
        if (c->variable_pointers) {
            refuse_wild_pointers(c, c->at);
        }
        break;
    }
}

void bhi_guard_clamp(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct clamps c = {
        .g = g,
        .non_uniform = bhi_ir_has_capability(ir, SpvCapabilityShaderNonUniform),
        .variable_pointers = bhi_ir_has_capability(ir, SpvCapabilityVariablePointers) ||
                             bhi_ir_has_capability(ir, SpvCapabilityVariablePointersStorageBuffer),
    };
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_GLOBALS].first; c.variable_pointers && ins;
         ins = ins->next) {
        refuse_wild_pointers(&c, ins);
    }
    for (struct bhi_ir_function *f = ir->first; f; f = f->next) {
        for (c.block = f->first; c.block; c.block = c.block->next) {
            for (c.at = c.block->body.first; c.at; c.at = c.at->next) {
                visit(&c);
            }
        }
    }
}
