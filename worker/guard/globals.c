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

uint32_t bhi_ir_shared(struct bhi_ir *ir, SpvOp op, uint32_t type, const uint32_t *operands,
                       size_t count) {
    const size_t first = 2u + (type != 0);
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_GLOBALS].first; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == op && ins->type == type && bhi_ins_length(ins) == first + count &&
            (count == 0 || memcmp(&ins->words[first], operands, count * sizeof *operands) == 0)) {
            return ins->result;
        }
    }
    return bhi_ir_global(ir, op, type, operands, count);
}

uint32_t bhi_ir_type_pointer(struct bhi_ir *ir, SpvStorageClass class, uint32_t type) {
    return bhi_ir_shared(ir, SpvOpTypePointer, 0, BHI_OPERANDS((uint32_t)class, type));
}

uint32_t bhi_ir_constant(struct bhi_ir *ir, uint32_t type, uint32_t value) {
    const uint32_t slot = (type * 31u + value) % 64u;
    if (ir->constants[slot].id == 0 || ir->constants[slot].type != type ||
        ir->constants[slot].value != value) {
        ir->constants[slot].id = bhi_ir_shared(ir, SpvOpConstant, type, BHI_OPERANDS(value));
        ir->constants[slot].type = type;
        ir->constants[slot].value = value;
    }
    return ir->constants[slot].id;
}

uint32_t bhi_ir_null(struct bhi_ir *ir, uint32_t type) {
    return bhi_ir_shared(ir, SpvOpConstantNull, type, NULL, 0);
}

void bhi_ir_decorate(struct bhi_ir *ir, SpvOp op, const uint32_t *operands, size_t count) {
    bhi_ins_append(&ir->sections[BHI_IR_DECORATIONS], bhi_ins_new(ir, op, 0, 0, operands, count));
}

const struct bhi_ins *bhi_ir_decoration(const struct bhi_ir *ir, SpvDecoration decoration,
                                        const struct bhi_ins *after) {
    const struct bhi_ins *ins = after ? after->next : ir->sections[BHI_IR_DECORATIONS].first;
    while (ins && (bhi_ins_op(ins) != SpvOpDecorate || ins->words[2] != (uint32_t)decoration)) {
        ins = ins->next;
    }
    return ins;
}

bool bhi_ir_is_decorated(const struct bhi_ir *ir, uint32_t id, SpvDecoration decoration) {
    const struct bhi_ins *ins = NULL;
    while ((ins = bhi_ir_decoration(ir, decoration, ins)) && ins->words[1] != id) {
    }
    return ins;
}

uint32_t bhi_ir_free_number(struct bhi_ir *ir, SpvDecoration decoration, const uint32_t *others,
                            uint32_t other_count) {
    uint32_t count = other_count, number = 0;
    for (const struct bhi_ins *i = NULL; (i = bhi_ir_decoration(ir, decoration, i));) {
        count++;
    }
    uint8_t *taken = bhi_ir_alloc(ir, (size_t)count + 1);
    for (const struct bhi_ins *i = NULL; (i = bhi_ir_decoration(ir, decoration, i));) {
        taken[i->words[3] < count ? i->words[3] : count] = 1;
    }
    for (uint32_t i = 0; i < other_count; i++) {
        taken[others[i] < count ? others[i] : count] = 1;
    }
    while (number < count && taken[number]) { /* [count] stands for all that are larger */
        number++;
    }
    return number;
}

uint32_t bhi_ir_builtin(struct bhi_ir *ir, SpvBuiltIn builtin, uint32_t pointer, uint32_t type_uint,
                        const char *name) {
    uint32_t found = 0;
    for (const struct bhi_ins *i = NULL; (i = bhi_ir_decoration(ir, SpvDecorationBuiltIn, i));) {
        const struct bhi_ins *variable = bhi_ir_definition(ir, i->words[1]);
        if (i->words[3] == (uint32_t)builtin && variable &&
            (pointer == 0 || variable->type == pointer)) {
            found = variable->result;
        }
    }
    if (found == 0) {
        found = bhi_ir_global(ir, SpvOpVariable,
                              bhi_ir_type_pointer(ir, SpvStorageClassInput, type_uint),
                              BHI_OPERANDS(SpvStorageClassInput));
        bhi_ir_decorate(ir, SpvOpDecorate,
                        BHI_OPERANDS(found, SpvDecorationBuiltIn, (uint32_t)builtin));
        bhi_ir_set_name(ir, found, name);
    }
    return found;
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

/* Returns the OpName of an id, cleaned, or "". */
static const char *name_of(struct bhi_ir *ir, uint32_t id) {
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
    const char *name = name_of(ir, id);
    snprintf(text, 160, name[0] != '\0' ? "Op%s %%%u (\"%s\")" : "Op%s %%%u%s",
             spvOpcodeString((uint32_t)op), id, name);
    return text;
}
