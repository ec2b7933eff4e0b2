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
    SpvHasResultAndType(bhi_spv_op(at), &has_result, &has_type);
    size_t length = bhi_spv_length(at);
    if (has_result && length > (has_type ? 2u : 1u)) {
        uint32_t id = at[has_type ? 2 : 1];
        if (id < module->bound) {
            module->definitions[id] = (uint32_t)offset;
        }
    }
    if (bhi_spv_op(at) == SpvOpDecorate && length >= 4 && at[1] < module->bound) {
        return decorate(module, at, error);
    }
    if (bhi_spv_op(at) == SpvOpEntryPoint && at[1] == SpvExecutionModelGLCompute &&
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
    const uint32_t *at = bhi_module_definition(module, type);
    if (!at) {
        return 0;
    }
    switch (bhi_spv_op(at)) {
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

static bool evaluate(const struct bhi_module *module, uint32_t id, unsigned *budget,
                     uint64_t *out_value);

/* Evaluates OpSpecConstantOp CompositeExtract of a composite of constants, as in
 * gl_WorkGroupSize.x. */
static bool evaluate_member(const struct bhi_module *module, const uint32_t *at, unsigned *budget,
                            uint64_t *out_value) {
    uint32_t part = at[4];
    for (size_t i = 5; i < bhi_spv_length(at); i++) {
        const uint32_t *whole = bhi_module_definition(module, part);
        if (!whole ||
            (bhi_spv_op(whole) != SpvOpConstantComposite &&
             bhi_spv_op(whole) != SpvOpSpecConstantComposite) ||
            at[i] >= bhi_spv_length(whole) - 3) {
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
    const bool divides = o->b != 0 && o->b != -1;
#define CASE(op, defined, result)                                                                  \
    case SpvOp##op:                                                                                \
        *out = (defined) ? (uint64_t)(result) : 0;                                                 \
        return defined
    switch (operation) {
        CASE(UConvert, true, v[0]);
        CASE(SConvert, true, o->a);
        CASE(SNegate, true, 0 - v[0]);
        CASE(IAdd, true, v[0] + v[1]);
        CASE(ISub, true, v[0] - v[1]);
        CASE(IMul, true, v[0] * v[1]);
        CASE(UDiv, v[1] != 0, v[0] / v[1]);
        CASE(UMod, v[1] != 0, v[0] % v[1]);
        CASE(SDiv, divides, o->a / o->b);
        CASE(SRem, divides, o->a % o->b);
        CASE(ShiftLeftLogical, v[1] < bits, v[0] << v[1]);
        CASE(ShiftRightLogical, v[1] < bits, v[0] >> v[1]);
        CASE(ShiftRightArithmetic, v[1] < bits, o->a >> v[1]);
        CASE(Not, true, ~v[0]);
        CASE(BitwiseAnd, true, v[0] & v[1]);
        CASE(LogicalAnd, true, v[0] & v[1]);
        CASE(BitwiseOr, true, v[0] | v[1]);
        CASE(LogicalOr, true, v[0] | v[1]);
        CASE(BitwiseXor, true, v[0] ^ v[1]);
        CASE(LogicalNotEqual, true, v[0] ^ v[1]);
        CASE(LogicalEqual, true, v[0] == v[1]);
        CASE(IEqual, true, v[0] == v[1]);
        CASE(INotEqual, true, v[0] != v[1]);
        CASE(LogicalNot, true, !v[0]);
        CASE(UGreaterThan, true, v[0] > v[1]);
        CASE(UGreaterThanEqual, true, v[0] >= v[1]);
        CASE(ULessThan, true, v[0] < v[1]);
        CASE(ULessThanEqual, true, v[0] <= v[1]);
        CASE(SGreaterThan, true, o->a > o->b);
        CASE(SGreaterThanEqual, true, o->a >= o->b);
        CASE(SLessThan, true, o->a < o->b);
        CASE(SLessThanEqual, true, o->a <= o->b);
        CASE(Select, true, v[0] ? v[1] : v[2]);
    default:
        return false;
    }
#undef CASE
}

/* Evaluates OpSpecConstantOp on integers, which compilers emit for sizes. */
static bool evaluate_op(const struct bhi_module *module, const uint32_t *at, unsigned *budget,
                        uint64_t *out_value) {
    const uint32_t bits = scalar_bits(module, at[1]);
    const size_t count = bhi_spv_length(at) - 4;
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
    const uint32_t *first = bhi_module_definition(module, at[4]);
    const uint32_t in_bits = scalar_bits(module, first[1]);
    operands.a = bhi_int_signed(operands.v[0], in_bits);
    operands.b = bhi_int_signed(operands.v[1], in_bits);
    uint64_t result;
    if (!calculate((SpvOp)at[3], &operands, bits, &result)) {
        return false;
    }
    *out_value = bhi_int_truncate(result, bits);
    return true;
}

static bool evaluate(const struct bhi_module *module, uint32_t id, unsigned *budget,
                     uint64_t *out_value) {
    const uint32_t *at = bhi_module_definition(module, id);
    if (!at || *budget == 0) {
        return false;
    }
    --*budget;
    const struct bhi_spec_constant *given = override(module, id);
    switch (bhi_spv_op(at)) {
    case SpvOpConstant:
    case SpvOpSpecConstant: {
        const uint32_t *type = bhi_module_definition(module, at[1]);
        if (!type || bhi_spv_op(type) != SpvOpTypeInt) {
            return false;
        }
        uint64_t value = at[3];
        if (bhi_spv_length(at) > 4) {
            value |= (uint64_t)at[4] << 32;
        }
        *out_value = bhi_int_truncate(given ? given->bits : value, type[2]);
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
        const uint32_t *at = module->spec_ids[id] != 0 ? bhi_module_definition(module, id) : NULL;
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
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module->code, module->words, at));) {
        size_t length = bhi_spv_length(at);
        if (bhi_spv_op(at) == SpvOpExecutionMode && length == 6 && at[1] == function &&
            at[2] == SpvExecutionModeLocalSize) {
            memcpy(out_size, &at[3], 3 * sizeof *out_size);
            found = true;
        } else if (bhi_spv_op(at) == SpvOpExecutionModeId && length == 6 && at[1] == function &&
                   at[2] == SpvExecutionModeLocalSizeId) {
            ids = &at[3];
        }
    }
    /* The builtin takes precedence over the execution modes (SPIR-V specification, LocalSize). */
    const uint32_t *builtin = module->work_group_size != 0
                                  ? bhi_module_definition(module, module->work_group_size)
                                  : NULL;
    if (builtin && bhi_spv_length(builtin) == 6) {
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
