/* Which instructions may run once more, or in another place, with the same effect. */
#include "worker/guard/purity.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <string.h>

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

bool bhi_ins_is_arithmetic(const struct bhi_ir *ir, const struct bhi_ins *ins) {
    const SpvOp op = bhi_ins_op(ins);
    return within(op, SpvOpVectorExtractDynamic, SpvOpTranspose) ||
           within(op, SpvOpConvertFToU, SpvOpFConvert) || op == SpvOpQuantizeToF16 ||
           op == SpvOpBitcast || within(op, SpvOpSNegate, SpvOpSMulExtended) ||
           within(op, SpvOpAny, SpvOpFUnordGreaterThanEqual) ||
           within(op, SpvOpShiftRightLogical, SpvOpBitCount) ||
           (op == SpvOpExtInst && is_pure_extended(ir, ins));
}

bool bhi_ins_is_repeatable(const struct bhi_ir *ir, const struct bhi_ins *ins) {
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
        return bhi_ins_is_arithmetic(ir, ins);
    }
}

/* Is |type| a writable block in the storage class Uniform, as modules before SPIR-V 1.3 have
 * them? */
static bool is_buffer_block(const struct bhi_ir *ir, uint32_t type) {
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_DECORATIONS].first; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpGroupDecorate ||
            (bhi_ins_op(ins) == SpvOpDecorate && ins->words[1] == type &&
             ins->words[2] == SpvDecorationBufferBlock)) {
            return true; /* a decoration group may decorate it so */
        }
    }
    return false;
}

bool bhi_pointer_is_constant(const struct bhi_ir *ir, uint32_t pointer) {
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
        return !is_buffer_block(ir, block);
    }
    default:
        return false;
    }
}
