#include "worker/guard/noise.h"

/* Of a structure: one with more begins as zero. So does what has one with none: such cost a module
 * nearly nothing. */
#define MAX_PARTS 64u
#define MAX_DEPTH 64u
/* Of a kernel, as three words of it can ask for a large value. What comes later is as without noise. */
#define MAX_NUMBERS (1u << 17)

static uint32_t part_count(const struct bhi_ins *type) {
    return bhi_ins_op(type) == SpvOpTypeStruct ? bhi_ins_length(type) - 2 : type->words[3];
}

static bool has_noise(const struct bhi_ir *ir, uint32_t type, bool arrays, unsigned depth) {
    const struct bhi_ins *ins = bhi_ir_definition(ir, type);
    switch (bhi_ins_op(ins)) {
    case SpvOpTypeBool:
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
        return true;
    case SpvOpTypeArray:
        return arrays && depth < MAX_DEPTH && has_noise(ir, ins->words[2], arrays, depth + 1);
    case SpvOpTypeStruct:
        for (uint32_t i = 0; i < part_count(ins); i++) {
            if (depth == MAX_DEPTH || !has_noise(ir, ins->words[2 + i], arrays, depth + 1)) {
                return false;
            }
        }
        return part_count(ins) > 0 && part_count(ins) <= MAX_PARTS;
    default:
        return false;
    }
}

bool bhi_guard_has_noise(const struct bhi_ir *ir, uint32_t type, bool arrays) {
    return has_noise(ir, type, arrays, 0);
}

static uint32_t draw(struct bhi_guard *g) {
    uint64_t x =
        ((uint64_t)(g->options->noise | 1) << 32 | g->drawn++) * UINT64_C(0x9E3779B97F4A7C15);
    x ^= x >> 29;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    return bhi_guard_is_opposite(g) ? ~(uint32_t)(x >> 33) : (uint32_t)(x >> 33);
}

static uint32_t constant(struct bhi_ir *ir, struct bhi_ins *at, SpvOp op, uint32_t type,
                         const uint32_t *operands, size_t count) {
    struct bhi_ins *ins = bhi_ins_new(ir, op, type, bhi_ir_id(ir), operands, count);
    bhi_ins_insert(&ir->sections[BHI_IR_GLOBALS], at, ins);
    return ins->result;
}

/* A number that no result is near: about 1e38 as a float of 32 bits, either sign. */
static uint32_t scalar(struct bhi_guard *g, const struct bhi_ins *type, struct bhi_ins *at) {
    const uint32_t random = draw(g), sign = random << 31;
    if (bhi_ins_op(type) == SpvOpTypeBool) {
        return constant(&g->ir, at, random & 1 ? SpvOpConstantTrue : SpvOpConstantFalse,
                        type->result, NULL, 0);
    }
    const uint32_t bits = type->words[2];
    const bool is_int = bhi_ins_op(type) == SpvOpTypeInt;
    const uint32_t low = bits == 64 || (is_int && bits == 32) ? random
                         : is_int                             ? 0x40 | (random & 0x3F)
                         : bits == 32 ? sign | 0x7E800000 | (random & 0x7FFFFF)
                                      : sign >> 16 | 0x7800 | (random & 0x3FF);
    return constant(&g->ir, at, SpvOpConstant, type->result,
                    (const uint32_t[]){low, is_int ? random >> 1 : sign | 0x7F000000},
                    bits == 64 ? 2 : 1);
}

uint32_t bhi_guard_noise(struct bhi_guard *g, uint32_t type, struct bhi_ins *at) {
    const struct bhi_ins *ins = bhi_ir_definition(&g->ir, type);
    const bool is_struct = bhi_ins_op(ins) == SpvOpTypeStruct;
    uint32_t parts[MAX_PARTS];
    if (!is_struct && bhi_ins_op(ins) != SpvOpTypeVector && bhi_ins_op(ins) != SpvOpTypeMatrix) {
        return scalar(g, ins, at);
    }
    const uint32_t count = part_count(ins);
    if (count > MAX_PARTS || g->drawn++ >= MAX_NUMBERS) {
        return bhi_ir_null(&g->ir, type);
    }
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = bhi_guard_noise(g, ins->words[is_struct ? 2 + i : 2], at);
    }
    return constant(&g->ir, at, SpvOpConstantComposite, type, parts, count);
}

/* -- values that are not defined -------------------------------------------------------------------
 * An optimiser makes them of variables that are read before they are written. */

static void define_global(struct bhi_guard *g, struct bhi_ins *undefined) {
    struct bhi_ins_list *globals = &g->ir.sections[BHI_IR_GLOBALS];
    struct bhi_ins *noise =
        bhi_ir_definition(&g->ir, bhi_guard_noise(g, undefined->type, undefined));
    /* Everything else knows it by the number that it had. */
    bhi_ins_insert(globals, undefined,
                   bhi_ins_new(&g->ir, bhi_ins_op(noise), undefined->type, undefined->result,
                               &noise->words[3], bhi_ins_length(noise) - 3));
    bhi_ins_remove(globals, undefined);
    bhi_ins_remove(globals, noise);
}

static void define_local(struct bhi_guard *g, struct bhi_basic_block *block,
                         struct bhi_ins *undefined) {
    const uint32_t noise = bhi_guard_noise(g, undefined->type, NULL);
    struct bhi_ins *copy = bhi_ins_new(&g->ir, SpvOpCopyObject, undefined->type, undefined->result,
                                       BHI_OPERANDS(noise));
    bhi_ins_insert(&block->body, undefined, copy);
    bhi_ins_remove(&block->body, undefined);
    copy->block = block;
}

static bool is_undefined(const struct bhi_guard *g, const struct bhi_ins *ins) {
    return bhi_ins_op(ins) == SpvOpUndef && g->drawn < MAX_NUMBERS &&
           bhi_guard_has_noise(&g->ir, ins->type, false);
}

void bhi_guard_define(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_ins *next;
    for (struct bhi_ins *ins = ir->sections[BHI_IR_GLOBALS].first; ins; ins = next) {
        next = ins->next;
        if (is_undefined(g, ins)) {
            define_global(g, ins);
        }
    }
    for (struct bhi_ir_function *f = ir->first; f; f = f->next) {
        for (struct bhi_basic_block *block = f->first; block; block = block->next) {
            for (struct bhi_ins *ins = block->body.first; ins; ins = next) {
                next = ins->next;
                if (is_undefined(g, ins)) {
                    define_local(g, block, ins);
                }
            }
        }
    }
}
