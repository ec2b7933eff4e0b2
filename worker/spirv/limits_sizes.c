/* Sizes, counted in scalars. A short module can declare a type of 2^30 elements, and compilers
 * split a value or a variable of it into single elements. */
#define SPV_ENABLE_UTILITY_CODE /* SpvHasResultAndType */
#include "base/format.h"
#include "worker/spirv/limits.h"

#include "worker/error.h"
#include "worker/spirv/module.h"
#include "worker/spirv/tools.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>

struct sizes {
    const struct bhi_module *module;
    struct bhi_error *error;
    struct id {
        uint64_t scalars; /* of a type: scalars in a value; UINT64_MAX: too many */
        uint32_t type;    /* of a value */
        uint32_t pointee; /* of a type: the type that it points to; 0: no pointer */
    } *ids;
    uint64_t variables; /* scalars in all Function and Private variables */
    bool inside;        /* the walk is inside a function */
    size_t number;
};

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t result;
    return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

static bool exceeds(const struct sizes *s, SpvOp op, uint32_t id, uint64_t value, uint64_t limit,
                    const char *what, const char *remedy) {
    if (value <= limit) {
        return false;
    }
    char where[200];
    bhi_format(where, sizeof where, " (instruction %zu, Op%s %%%u): %s", s->number,
               spvOpcodeString((uint32_t)op), id, remedy);
    BHI_ERROR(s->error, BH_REASON_GUARD_LIMIT, what, .value = value, .limit = limit, .text = where);
    return true;
}

static bool take_type(struct sizes *s, const uint32_t *at, size_t length, SpvOp op) {
    uint64_t *out = &s->ids[at[1]].scalars;
    uint64_t count;
    switch (op) {
    case SpvOpTypeBool:
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
        *out = 1;
        return true;
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
        *out = times(s->ids[at[2]].scalars, at[3]);
        return true;
    case SpvOpTypeArray:
        if (!bhi_module_constant(s->module, at[3], &count)) {
            BHI_ERROR_SAY(s->error, BH_REASON_KERNEL_RULE,
                          "the length of an array is not a constant that can be computed here "
                          "(instruction %zu, OpTypeArray %%%u): write it as a literal or a "
                          "specialization constant",
                          s->number, at[1]);
            return false;
        }
        if (count == 0) {
            BHI_ERROR_SAY(
                s->error, BH_REASON_KERNEL_RULE,
                "the length of an array is 0 with these specialization constants (instruction %zu, "
                "OpTypeArray %%%u): give constants that make it 1 or more",
                s->number, at[1]);
            return false;
        }
        *out = times(s->ids[at[2]].scalars, count);
        return true;
    case SpvOpTypeStruct:
        for (size_t i = 2; i < length; i++) {
            if (__builtin_add_overflow(*out, s->ids[at[i]].scalars, out)) {
                *out = UINT64_MAX;
            }
        }
        return true;
    case SpvOpTypePointer:
        s->ids[at[1]].pointee = at[3];
        return true;
    default:
        return true;
    }
}

static bool take_variable(struct sizes *s, const uint32_t *at, size_t length) {
    if (at[3] != SpvStorageClassFunction && at[3] != SpvStorageClassPrivate) {
        return true; /* workgroup memory has the device's own limit */
    }
    const uint64_t count = s->ids[s->ids[at[1]].pointee].scalars;
    if (exceeds(s, SpvOpVariable, at[2], count, BHI_LIMIT_VARIABLE,
                "scalars in a variable of each invocation", "keep the array in a buffer")) {
        return false;
    }
    s->variables += count;
    return !exceeds(s, SpvOpVariable, at[2], s->variables, BHI_LIMIT_VARIABLES,
                    "scalars in the variables of each invocation", "keep arrays in a buffer") &&
           (length < 5 ||
            !exceeds(s, SpvOpVariable, at[2], count, BHI_LIMIT_INITIALISED,
                     "scalars in a variable with an initialiser", "keep the table in a buffer"));
}

static bool value_fits(const struct sizes *s, SpvOp op, uint32_t id, uint32_t type) {
    return !exceeds(s, op, id, s->ids[type].scalars, BHI_LIMIT_VALUE, "scalars in one value",
                    "load, store and pass elements instead of the whole");
}

/* A null constant counts only where it is used: it may only initialise workgroup memory. */
static bool take_use(const struct sizes *s, const uint32_t *at, SpvOp op) {
    switch (op) {
    case SpvOpStore:
        return value_fits(s, op, at[2], s->ids[at[2]].type);
    case SpvOpCopyMemory:
        return value_fits(s, op, at[1], s->ids[s->ids[at[1]].type].pointee);
    default:
        return true;
    }
}

static bool take(struct sizes *s, const uint32_t *at) {
    const size_t length = bhi_spv_length(at);
    const SpvOp op = bhi_spv_op(at);
    bool has_result = false, has_type = false;
    SpvHasResultAndType(op, &has_result, &has_type);
    s->inside |= op == SpvOpFunction;
    if (!has_type) {
        return has_result && !s->inside ? take_type(s, at, length, op) : take_use(s, at, op);
    }
    s->ids[at[2]].type = at[1];
    if (op == SpvOpVariable) {
        return take_variable(s, at, length);
    }
    return (op == SpvOpConstantNull && !s->inside) || value_fits(s, op, at[2], at[1]);
}

bool bhi_guard_limits_sizes(const uint32_t *code, size_t words, const char *entry,
                            const struct bhi_spec_constant *constants, uint32_t constant_count,
                            struct bhi_error *error) {
    struct bhi_module module;
    if (!bhi_module_init(&module, code, words, entry, constants, constant_count, error)) {
        return false;
    }
    struct sizes s = {.module = &module, .error = error};
    s.ids = calloc(module.bound, sizeof *s.ids);
    bool ok = s.ids;
    if (!ok) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a check of the kernel");
    }
    for (size_t i = 5; ok && i < words; i += bhi_spv_length(&code[i])) {
        s.number++;
        ok = take(&s, &code[i]);
    }
    free(s.ids);
    bhi_module_fini(&module);
    return ok;
}
