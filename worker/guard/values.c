#include "worker/guard/values.h"

#define MAX_STEPS 64u

uint32_t bhi_int_bits(const struct bhi_ir *ir, uint32_t type) {
    const struct bhi_ins *ins = bhi_ir_definition(ir, type);
    return ins && bhi_ins_op(ins) == SpvOpTypeInt ? ins->words[2] : 0;
}

/* Compares the exact results, unsigned and signed, with the truncated result. Adding 2^n-1 counts
 * as subtracting 1, and leaves the range only where that does. */
static uint32_t wrapping(uint32_t bits, __int128 as_unsigned, __int128 as_signed, uint64_t kept) {
    return (as_unsigned != (__int128)kept ? 1u : 0u) |
           (as_signed != (__int128)bhi_int_signed(kept, bits) ? 2u : 0u);
}

bool bhi_int_apply(SpvOp op, uint32_t bits, uint64_t a, uint64_t b, uint64_t *out,
                   uint32_t *wraps) {
    const int64_t sa = bhi_int_signed(a, bits), sb = bhi_int_signed(b, bits);
    __int128 as_unsigned, as_signed;
    switch (op) {
    case SpvOpIAdd:
        as_unsigned = sb < 0 ? (__int128)a + sb : (__int128)a + b;
        as_signed = (__int128)sa + sb;
        break;
    case SpvOpISub:
        as_unsigned = sb < 0 ? (__int128)a - sb : (__int128)a - b;
        as_signed = (__int128)sa - sb;
        break;
    case SpvOpIMul:
        if (bits > 32) {
            return false; /* the product would not fit into 128 bits */
        }
        as_unsigned = (__int128)a * (__int128)b;
        as_signed = (__int128)sa * sb;
        break;
    case SpvOpShiftLeftLogical:
        if (b >= bits || b > 62) {
            return false;
        }
        as_unsigned = (__int128)a * ((__int128)1 << b);
        as_signed = (__int128)sa * ((__int128)1 << b);
        break;
    case SpvOpShiftRightLogical:
        if (b >= bits) {
            return false;
        }
        as_unsigned = as_signed = a >> b;
        break;
    case SpvOpShiftRightArithmetic:
        if (b >= bits) {
            return false;
        }
        as_signed = sa >> b;
        as_unsigned = bhi_int_truncate((uint64_t)(sa >> b), bits);
        break;
    case SpvOpUDiv:
    case SpvOpUMod:
        if (b == 0) {
            return false;
        }
        as_unsigned = as_signed = op == SpvOpUDiv ? a / b : a % b;
        break;
    case SpvOpSDiv:
        if (sb <= 0) {
            return false;
        }
        as_signed = sa / sb;
        as_unsigned = bhi_int_truncate((uint64_t)(sa / sb), bits);
        break;
    default:
        return false;
    }
    *out = bhi_int_truncate((uint64_t)as_unsigned, bits);
    *wraps = wrapping(bits, as_unsigned, as_signed, *out);
    return true;
}

bool bhi_constant_of(const struct bhi_ir *ir, const struct bhi_module *module, uint32_t id,
                     uint64_t *out) {
    if (id < module->bound) {
        return bhi_module_constant(module, id, out);
    }
    const struct bhi_ins *ins = bhi_ir_definition(ir, id);
    if (!ins || bhi_ins_op(ins) != SpvOpConstant || bhi_ins_length(ins) != 4) {
        return false;
    }
    *out = ins->words[3];
    return true;
}

static bool value_of(const struct bhi_values *values, uint32_t id, unsigned *budget, uint64_t *out);

static bool value_of_ins(const struct bhi_values *values, const struct bhi_ins *ins,
                         unsigned *budget, uint64_t *out) {
    const uint32_t bits = bhi_int_bits(values->ir, ins->type);
    const SpvOp op = bhi_ins_op(ins);
    uint64_t a, b;
    if (bits == 0) {
        return false;
    }
    if (op == SpvOpBitcast || op == SpvOpCopyObject || op == SpvOpUConvert || op == SpvOpSConvert) {
        const struct bhi_ins *from = bhi_ir_definition(values->ir, ins->words[3]);
        const uint32_t from_bits = from ? bhi_int_bits(values->ir, from->type) : 0;
        if (from_bits == 0 || !value_of(values, ins->words[3], budget, &a)) {
            return false;
        }
        *out = bhi_int_truncate(op == SpvOpSConvert ? (uint64_t)bhi_int_signed(a, from_bits) : a,
                                bits);
        return true;
    }
    if (op == SpvOpLoad) {
        /* A load from a variable that has one store, which comes before it. */
        const struct bhi_local *local = bhi_local_of_load(values->ir, ins);
        return local && local->store_count == 1 && bhi_ins_precedes(local->stores[0], ins) &&
               value_of(values, local->stores[0]->words[2], budget, out);
    }
    uint32_t wraps;
    return bhi_ins_length(ins) == 5 && value_of(values, ins->words[3], budget, &a) &&
           value_of(values, ins->words[4], budget, &b) &&
           bhi_int_apply(op, bits, a, b, out, &wraps);
}

static bool value_of(const struct bhi_values *values, uint32_t id, unsigned *budget,
                     uint64_t *out) {
    const struct bhi_ins *ins = bhi_ir_definition(values->ir, id);
    if (!ins || *budget == 0) {
        return false;
    }
    --*budget;
    if (!ins->block) {
        return id < values->module->bound && bhi_int_bits(values->ir, ins->type) != 0 &&
               bhi_module_constant(values->module, id, out);
    }
    if (bhi_ins_op(ins) == SpvOpCompositeExtract) {
        uint32_t part = ins->words[3];
        for (uint32_t i = 4; i < bhi_ins_length(ins); i++) {
            const struct bhi_ins *whole = bhi_ir_definition(values->ir, part);
            const SpvOp op = whole ? bhi_ins_op(whole) : SpvOpNop;
            if ((op != SpvOpConstantComposite && op != SpvOpSpecConstantComposite) ||
                ins->words[i] >= bhi_ins_length(whole) - 3) {
                return false;
            }
            part = whole->words[3 + ins->words[i]];
        }
        return value_of(values, part, budget, out);
    }
    return value_of_ins(values, ins, budget, out);
}

bool bhi_value_of(const struct bhi_values *values, uint32_t id, uint64_t *out) {
    unsigned budget = MAX_STEPS;
    return value_of(values, id, &budget, out);
}
