/* What comes before a module's functions: types, constants, names, decorations. */
#include "worker/guard/ir.h"

#include "base/text.h"
#include "worker/spirv/tools.h"
#include <bulkhead/bulkhead.h>

#include <stdio.h>
#include <string.h>

uint32_t bhi_ir_global(struct bhi_ir *ir, SpvOp op, uint32_t type, const uint32_t *operands,
                       size_t count) {
    struct bhi_ins *ins = bhi_ins_new(ir, op, type, bhi_ir_id(ir), operands, count);
    bhi_ins_append(&ir->sections[BHI_IR_GLOBALS], ins);
    return ins->result;
}

/* Returns the result of the first global with these operands, or 0. */
static uint32_t find(const struct bhi_ir *ir, SpvOp op, uint32_t type, const uint32_t *operands,
                     size_t count) {
    const size_t first = 2u + (type != 0);
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_GLOBALS].first; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == op && ins->type == type && bhi_ins_length(ins) == first + count &&
            (count == 0 || memcmp(&ins->words[first], operands, count * sizeof *operands) == 0)) {
            return ins->result;
        }
    }
    return 0;
}

static uint32_t find_or_make(struct bhi_ir *ir, SpvOp op, uint32_t type, const uint32_t *operands,
                             size_t count) {
    const uint32_t found = find(ir, op, type, operands, count);
    return found != 0 ? found : bhi_ir_global(ir, op, type, operands, count);
}

uint32_t bhi_ir_type_uint(struct bhi_ir *ir) {
    if (ir->type_uint == 0) {
        ir->type_uint = find_or_make(ir, SpvOpTypeInt, 0, BHI_OPERANDS(32, 0));
    }
    return ir->type_uint;
}

uint32_t bhi_ir_type_bool(struct bhi_ir *ir) {
    if (ir->type_bool == 0) {
        ir->type_bool = find_or_make(ir, SpvOpTypeBool, 0, NULL, 0);
    }
    return ir->type_bool;
}

uint32_t bhi_ir_type_pointer(struct bhi_ir *ir, SpvStorageClass class, uint32_t type) {
    return find_or_make(ir, SpvOpTypePointer, 0, BHI_OPERANDS((uint32_t)class, type));
}

uint32_t bhi_ir_constant(struct bhi_ir *ir, uint32_t type, uint32_t value) {
    const uint32_t slot = (type * 31u + value) % 64u;
    if (ir->constants[slot].id == 0 || ir->constants[slot].type != type ||
        ir->constants[slot].value != value) {
        ir->constants[slot].id = find_or_make(ir, SpvOpConstant, type, BHI_OPERANDS(value));
        ir->constants[slot].type = type;
        ir->constants[slot].value = value;
    }
    return ir->constants[slot].id;
}

uint32_t bhi_ir_null(struct bhi_ir *ir, uint32_t type) {
    return find_or_make(ir, SpvOpConstantNull, type, NULL, 0);
}

void bhi_ir_decorate(struct bhi_ir *ir, SpvOp op, const uint32_t *operands, size_t count) {
    bhi_ins_append(&ir->sections[BHI_IR_DECORATIONS], bhi_ins_new(ir, op, 0, 0, operands, count));
}

/* Writes |text| as a literal string after the |first| words. Returns the number of all words. */
static size_t with_string(uint32_t *words, size_t capacity, size_t first, const char *text) {
    const size_t bytes = strnlen(text, (capacity - first) * sizeof *words - 1);
    memset(&words[first], 0, (capacity - first) * sizeof *words);
    memcpy(&words[first], text, bytes);
    return first + bytes / sizeof *words + 1;
}

void bhi_ir_set_name(struct bhi_ir *ir, uint32_t id, const char *name) {
    uint32_t words[16] = {id};
    const size_t count = with_string(words, 16, 1, name);
    bhi_ins_append(&ir->sections[BHI_IR_NAMES], bhi_ins_new(ir, SpvOpName, 0, 0, words, count));
}

void bhi_ir_extension(struct bhi_ir *ir, const char *name) {
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_EXTENSIONS].first; ins; ins = ins->next) {
        if (strcmp((const char *)&ins->words[1], name) == 0) {
            return;
        }
    }
    uint32_t words[24];
    const size_t count = with_string(words, 24, 0, name);
    bhi_ins_append(&ir->sections[BHI_IR_EXTENSIONS],
                   bhi_ins_new(ir, SpvOpExtension, 0, 0, words, count));
}

bool bhi_ir_has_capability(const struct bhi_ir *ir, SpvCapability capability) {
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_CAPABILITIES].first; ins;
         ins = ins->next) {
        if (ins->words[1] == (uint32_t)capability) {
            return true;
        }
    }
    return false;
}

void bhi_ir_capability(struct bhi_ir *ir, SpvCapability capability) {
    if (!bhi_ir_has_capability(ir, capability)) {
        bhi_ins_append(&ir->sections[BHI_IR_CAPABILITIES],
                       bhi_ins_new(ir, SpvOpCapability, 0, 0, BHI_OPERANDS((uint32_t)capability)));
    }
}

const char *bhi_ir_name(struct bhi_ir *ir, uint32_t id) {
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_NAMES].first; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpName && ins->words[1] == id) {
            const char *text = (const char *)&ins->words[2];
            char *name = bhi_ir_alloc(ir, 64);
            bhi_text_line(name, 64, text, strlen(text));
            return name;
        }
    }
    return "";
}

const char *bhi_ir_describe(struct bhi_ir *ir, SpvOp op, uint32_t id) {
    char *text = bhi_ir_alloc(ir, 160);
    const char *name = bhi_ir_name(ir, id);
    snprintf(text, 160, name[0] != '\0' ? "Op%s %%%u (\"%s\")" : "Op%s %%%u%s",
             spvOpcodeString((uint32_t)op), id, name);
    return text;
}
