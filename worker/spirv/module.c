#define SPV_ENABLE_UTILITY_CODE /* SpvHasResultAndType */
#include "worker/spirv/module.h"

#include "worker/error.h"
#include "worker/spirv/module_access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The header defines the function inline; this declaration emits it for calls that are not
 * inlined. */
extern inline void SpvHasResultAndType(SpvOp op, bool *has_result, bool *has_type);

/* A limit: expressions may share parts, so n lines of a module can need 2^n steps. */
#define MAX_EVALUATIONS 1000u

static SpvOp opcode(const uint32_t *at) {
    return (SpvOp)(at[0] & SpvOpCodeMask);
}

static const uint32_t *definition(const struct bhi_module *module, uint32_t id) {
    if (id >= module->bound || module->definitions[id] == 0) {
        return NULL;
    }
    return &module->code[module->definitions[id]];
}

/* Refuses two decorations of the same kind: the index must have the value that the driver uses, and
 * drivers may use either. */
static bool decorate(struct bhi_module *module, const uint32_t *at, struct bhi_error *error) {
    const char *what = NULL;
    if (at[2] == SpvDecorationSpecId) {
        what = module->spec_ids[at[1]] != 0 ? "SpecId" : NULL;
        module->spec_ids[at[1]] = at[3] + 1;
    } else if (at[2] == SpvDecorationBuiltIn && at[3] == SpvBuiltInWorkgroupSize) {
        what = module->work_group_size != 0 ? "BuiltIn WorkgroupSize" : NULL;
        module->work_group_size = at[1];
    }
    if (what) {
        BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                      "%s is decorated twice (OpDecorate %%%u), and SPIR-V does not say which one "
                      "counts: remove one",
                      what, at[1]);
    }
    return !what;
}

/* Indexes one instruction. */
static bool index_instruction(struct bhi_module *module, size_t offset, const char *entry,
                              struct bhi_error *error) {
    const uint32_t *at = &module->code[offset];
    bool has_result = false, has_type = false;
    SpvHasResultAndType(opcode(at), &has_result, &has_type);
    size_t length = at[0] >> SpvWordCountShift;
    if (has_result && length > (has_type ? 2u : 1u)) {
        uint32_t id = at[has_type ? 2 : 1];
        if (id < module->bound) {
            module->definitions[id] = (uint32_t)offset;
        }
    }
    if (opcode(at) == SpvOpDecorate && length >= 4 && at[1] < module->bound) {
        return decorate(module, at, error);
    }
    if (opcode(at) == SpvOpEntryPoint && at[1] == SpvExecutionModelGLCompute &&
        strcmp((const char *)&at[3], entry) == 0) {
        module->entry = (uint32_t)offset;
    }
    return true;
}

bool bhi_module_init(struct bhi_module *module, const uint32_t *code, size_t words,
                     const char *entry, const struct bhi_spec_constant *constants,
                     uint32_t constant_count, struct bhi_error *error) {
    memset(module, 0, sizeof *module);
    module->code = code;
    module->words = words;
    module->bound = code[3];
    module->constants = constants;
    module->constant_count = constant_count;
    module->definitions = calloc(module->bound, sizeof *module->definitions);
    module->spec_ids = calloc(module->bound, sizeof *module->spec_ids);
    module->uses = calloc(module->bound, sizeof *module->uses);
    if (!module->definitions || !module->spec_ids || !module->uses) {
        bhi_module_fini(module);
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a reflection");
        return false;
    }
    for (size_t i = 5; i < words; i += code[i] >> SpvWordCountShift) {
        if (!index_instruction(module, i, entry, error)) {
            bhi_module_fini(module);
            return false;
        }
    }
    if (!bhi_module_find_accesses(module)) {
        bhi_module_fini(module);
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a reflection");
        return false;
    }
    return true;
}

void bhi_module_fini(struct bhi_module *module) {
    free(module->definitions);
    free(module->spec_ids);
    free(module->uses);
    memset(module, 0, sizeof *module);
}

uint32_t bhi_module_uses(const struct bhi_module *module, uint32_t id) {
    return id < module->bound ? module->uses[id] : 0;
}

/* Returns the bits of a scalar type, 0 for others. A boolean has 32, as in a specialization
 * entry. */
static uint32_t scalar_bits(const struct bhi_module *module, uint32_t type) {
    const uint32_t *at = definition(module, type);
    if (!at) {
        return 0;
    }
    switch (opcode(at)) {
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
        return at[2];
    case SpvOpTypeBool:
        return 32;
    default:
        return 0;
    }
}

static const struct bhi_spec_constant * override(const struct bhi_module *module, uint32_t id) {
    uint32_t spec_id = module->spec_ids[id];
    for (uint32_t i = 0; spec_id != 0 && i < module->constant_count; i++) {
        if (module->constants[i].constant_id == spec_id - 1) {
            return &module->constants[i];
        }
    }
    return NULL;
}

static uint64_t truncate_to(uint64_t value, uint32_t bits) {
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static int64_t sign_extend(uint64_t value, uint32_t bits) {
    if (bits < 64 && (value >> (bits - 1)) & 1) {
        value |= ~UINT64_C(0) << bits;
    }
    return (int64_t)value;
}

static bool evaluate(const struct bhi_module *module, uint32_t id, unsigned *budget,
                     uint64_t *out_value);

/* Evaluates OpSpecConstantOp CompositeExtract of a composite of constants, as in
 * gl_WorkGroupSize.x. */
static bool evaluate_member(const struct bhi_module *module, const uint32_t *at, unsigned *budget,
                            uint64_t *out_value) {
    uint32_t part = at[4];
    for (size_t i = 5; i < at[0] >> SpvWordCountShift; i++) {
        const uint32_t *whole = definition(module, part);
        if (!whole ||
            (opcode(whole) != SpvOpConstantComposite &&
             opcode(whole) != SpvOpSpecConstantComposite) ||
            at[i] >= (whole[0] >> SpvWordCountShift) - 3) {
            return false;
        }
        part = whole[3 + at[i]];
    }
    return evaluate(module, part, budget, out_value);
}

/* Operands of an operation: as they are, and the first two as signed numbers. */
struct operands {
    uint64_t v[3];
    int64_t a, b;
};

/* Returns false for other operations, and for what has no result. */
static bool calculate(SpvOp operation, const struct operands *o, uint32_t bits, uint64_t *out) {
    const uint64_t *v = o->v;
    switch (operation) {
    case SpvOpUConvert:
        *out = v[0];
        return true;
    case SpvOpSConvert:
        *out = (uint64_t)o->a;
        return true;
    case SpvOpSNegate:
        *out = 0 - v[0];
        return true;
    case SpvOpIAdd:
        *out = v[0] + v[1];
        return true;
    case SpvOpISub:
        *out = v[0] - v[1];
        return true;
    case SpvOpIMul:
        *out = v[0] * v[1];
        return true;
    case SpvOpUDiv:
        if (v[1] == 0) {
            return false;
        }
        *out = v[0] / v[1];
        return true;
    case SpvOpUMod:
        if (v[1] == 0) {
            return false;
        }
        *out = v[0] % v[1];
        return true;
    case SpvOpSDiv:
        if (o->b == 0 || o->b == -1) {
            return false;
        }
        *out = (uint64_t)(o->a / o->b);
        return true;
    case SpvOpSRem:
        if (o->b == 0 || o->b == -1) {
            return false;
        }
        *out = (uint64_t)(o->a % o->b);
        return true;
    case SpvOpShiftLeftLogical:
        if (v[1] >= bits) {
            return false;
        }
        *out = v[0] << v[1];
        return true;
    case SpvOpShiftRightLogical:
        if (v[1] >= bits) {
            return false;
        }
        *out = v[0] >> v[1];
        return true;
    case SpvOpShiftRightArithmetic:
        if (v[1] >= bits) {
            return false;
        }
        *out = (uint64_t)(o->a >> v[1]);
        return true;
    default:
        return false;
    }
}

static bool compare_or_combine(SpvOp operation, const struct operands *o, uint64_t *out) {
    const uint64_t *v = o->v;
    switch (operation) {
    case SpvOpNot:
        *out = ~v[0];
        return true;
    case SpvOpBitwiseAnd:
    case SpvOpLogicalAnd:
        *out = v[0] & v[1];
        return true;
    case SpvOpBitwiseOr:
    case SpvOpLogicalOr:
        *out = v[0] | v[1];
        return true;
    case SpvOpBitwiseXor:
    case SpvOpLogicalNotEqual:
        *out = v[0] ^ v[1];
        return true;
    case SpvOpLogicalEqual:
    case SpvOpIEqual:
        *out = v[0] == v[1];
        return true;
    case SpvOpINotEqual:
        *out = v[0] != v[1];
        return true;
    case SpvOpLogicalNot:
        *out = !v[0];
        return true;
    case SpvOpUGreaterThan:
        *out = v[0] > v[1];
        return true;
    case SpvOpUGreaterThanEqual:
        *out = v[0] >= v[1];
        return true;
    case SpvOpULessThan:
        *out = v[0] < v[1];
        return true;
    case SpvOpULessThanEqual:
        *out = v[0] <= v[1];
        return true;
    case SpvOpSGreaterThan:
        *out = o->a > o->b;
        return true;
    case SpvOpSGreaterThanEqual:
        *out = o->a >= o->b;
        return true;
    case SpvOpSLessThan:
        *out = o->a < o->b;
        return true;
    case SpvOpSLessThanEqual:
        *out = o->a <= o->b;
        return true;
    case SpvOpSelect:
        *out = v[0] ? v[1] : v[2];
        return true;
    default:
        return false;
    }
}

/* Evaluates OpSpecConstantOp on integers, which compilers emit for sizes. */
static bool evaluate_op(const struct bhi_module *module, const uint32_t *at, unsigned *budget,
                        uint64_t *out_value) {
    const uint32_t bits = scalar_bits(module, at[1]);
    const size_t count = (at[0] >> SpvWordCountShift) - 4;
    struct operands operands = {.v = {0}};
    if (at[3] == SpvOpCompositeExtract) {
        return bits != 0 && count > 0 && evaluate_member(module, at, budget, out_value);
    }
    if (bits == 0 || count == 0 || count > 3) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!evaluate(module, at[4 + i], budget, &operands.v[i])) {
            return false;
        }
    }
    const uint32_t *first = definition(module, at[4]);
    const uint32_t in_bits = scalar_bits(module, first[1]);
    operands.a = sign_extend(operands.v[0], in_bits);
    operands.b = sign_extend(operands.v[1], in_bits);
    uint64_t result;
    if (!calculate((SpvOp)at[3], &operands, bits, &result) &&
        !compare_or_combine((SpvOp)at[3], &operands, &result)) {
        return false;
    }
    *out_value = truncate_to(result, bits);
    return true;
}

static bool evaluate(const struct bhi_module *module, uint32_t id, unsigned *budget,
                     uint64_t *out_value) {
    const uint32_t *at = definition(module, id);
    if (!at || *budget == 0) {
        return false;
    }
    --*budget;
    const struct bhi_spec_constant *given = override(module, id);
    switch (opcode(at)) {
    case SpvOpConstant:
    case SpvOpSpecConstant: {
        const uint32_t *type = definition(module, at[1]);
        if (!type || opcode(type) != SpvOpTypeInt) {
            return false;
        }
        uint64_t value = at[3];
        if ((at[0] >> SpvWordCountShift) > 4) {
            value |= (uint64_t)at[4] << 32;
        }
        *out_value = truncate_to(given ? given->bits : value, type[2]);
        return true;
    }
    case SpvOpConstantTrue:
    case SpvOpSpecConstantTrue:
        *out_value = given ? given->bits != 0 : 1;
        return true;
    case SpvOpConstantFalse:
    case SpvOpSpecConstantFalse:
        *out_value = given ? given->bits != 0 : 0;
        return true;
    case SpvOpConstantNull:
        *out_value = 0;
        return scalar_bits(module, at[1]) != 0;
    case SpvOpSpecConstantOp:
        return evaluate_op(module, at, budget, out_value);
    default:
        return false;
    }
}

bool bhi_module_constant(const struct bhi_module *module, uint32_t id, uint64_t *out_value) {
    unsigned budget = MAX_EVALUATIONS;
    return evaluate(module, id, &budget, out_value);
}

bool bhi_module_check_constants(const struct bhi_module *module, struct bhi_error *error) {
    for (uint32_t id = 1; id < module->bound; id++) {
        const uint32_t *at = module->spec_ids[id] != 0 ? definition(module, id) : NULL;
        const struct bhi_spec_constant *given = at ? override(module, id) : NULL;
        if (!given) {
            continue;
        }
        uint32_t bytes = scalar_bits(module, at[1]) / 8;
        if (given->size != bytes) {
            char name[16];
            snprintf(name, sizeof name, "%u", given->constant_id);
            BHI_ERROR(error, BH_REASON_SPECIALIZATION, name, .value = given->size, .limit = bytes);
            return false;
        }
    }
    return true;
}

bool bhi_module_local_size(const struct bhi_module *module, uint32_t out_size[3],
                           struct bhi_error *error) {
    const uint32_t function = module->code[module->entry + 2];
    const uint32_t *ids = NULL;
    bool found = false;
    for (size_t i = 5; i < module->words && opcode(&module->code[i]) != SpvOpFunction;
         i += module->code[i] >> SpvWordCountShift) {
        const uint32_t *at = &module->code[i];
        size_t length = at[0] >> SpvWordCountShift;
        if (opcode(at) == SpvOpExecutionMode && length == 6 && at[1] == function &&
            at[2] == SpvExecutionModeLocalSize) {
            memcpy(out_size, &at[3], 3 * sizeof *out_size);
            found = true;
        } else if (opcode(at) == SpvOpExecutionModeId && length == 6 && at[1] == function &&
                   at[2] == SpvExecutionModeLocalSizeId) {
            ids = &at[3];
        }
    }
    /* The builtin takes precedence over the execution modes (SPIR-V specification, LocalSize). */
    const uint32_t *builtin =
        module->work_group_size != 0 ? definition(module, module->work_group_size) : NULL;
    if (builtin && (builtin[0] >> SpvWordCountShift) == 6) {
        ids = &builtin[3];
    }
    for (int axis = 0; ids && axis < 3; axis++) {
        uint64_t value;
        if (!bhi_module_constant(module, ids[axis], &value)) {
            BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                          "the workgroup size in %c is not a constant that can be computed here",
                          "xyz"[axis]);
            return false;
        }
        out_size[axis] = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
        found = true;
    }
    if (!found || out_size[0] == 0 || out_size[1] == 0 || out_size[2] == 0) {
        BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE, "the kernel has no workgroup size");
        return false;
    }
    return true;
}
