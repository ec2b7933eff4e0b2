#include "worker/spirv/array_indices.h"

#include "worker/error.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>

struct check {
    const struct bhi_module *module;
    const struct bhi_array_rules *rules;
    struct bhi_error *error;
};

static bool is_decorated(const struct check *c, uint32_t id, SpvDecoration decoration) {
    const struct bhi_module *module = c->module;
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module->code, module->words, at));) {
        if (bhi_spv_op(at) == SpvOpDecorate && at[1] == id && at[2] == (uint32_t)decoration) {
            return true;
        }
    }
    return false;
}

/* The kind of what the pointer at the start of an access chain points to. */
enum arrays { NO_ARRAY, STORAGE_ARRAY, UNIFORM_ARRAY };

static enum arrays array_of(const struct check *c, uint32_t pointer) {
    const uint32_t *from = bhi_module_definition(c->module, pointer);
    const uint32_t *type =
        from && bhi_spv_length(from) > 2 ? bhi_module_definition(c->module, from[1]) : NULL;
    if (!type || bhi_spv_op(type) != SpvOpTypePointer ||
        (type[2] != SpvStorageClassStorageBuffer && type[2] != SpvStorageClassUniform)) {
        return NO_ARRAY;
    }
    const uint32_t *array = bhi_module_definition(c->module, type[3]);
    if (!array ||
        (bhi_spv_op(array) != SpvOpTypeArray && bhi_spv_op(array) != SpvOpTypeRuntimeArray)) {
        return NO_ARRAY;
    }
    /* An array of anything else is inside one buffer. */
    if (is_decorated(c, array[2], SpvDecorationBufferBlock)) {
        return STORAGE_ARRAY;
    }
    if (!is_decorated(c, array[2], SpvDecorationBlock)) {
        return NO_ARRAY;
    }
    return type[2] == SpvStorageClassUniform ? UNIFORM_ARRAY : STORAGE_ARRAY;
}

static bool is_chain(const uint32_t *at) {
    return (bhi_spv_op(at) == SpvOpAccessChain || bhi_spv_op(at) == SpvOpInBoundsAccessChain) &&
           bhi_spv_length(at) > 4;
}

/* Returns the kind of array from which |at| picks a buffer by a computed index. */
static enum arrays computed(const struct check *c, const uint32_t *at) {
    uint64_t value;
    if (!is_chain(at) || bhi_module_constant(c->module, at[4], &value)) {
        return NO_ARRAY;
    }
    return array_of(c, at[3]);
}

static bool refuse_chain(const struct check *c, const uint32_t *at, const char *kind,
                         const char *how, const char *why) {
    BHI_ERROR_SAY(c->error, BH_REASON_KERNEL_RULE,
                  "OpAccessChain %%%u: the index into an array of %s buffers is %s; %s: index the "
                  "array with constants",
                  at[2], kind, how, why);
    return false;
}

static bool check_chain(const struct check *c, const uint32_t *at, enum arrays kind) {
    const struct bhi_array_rules *rules = c->rules;
    const bool varies = is_decorated(c, at[2], SpvDecorationNonUniform) ||
                        is_decorated(c, at[4], SpvDecorationNonUniform);
    const bool uniform = kind == UNIFORM_ARRAY;
    const char *name = uniform ? "uniform" : "storage";
    if (!(uniform ? rules->uniform : rules->storage)) {
        return refuse_chain(
            c, at, name, "computed",
            uniform ? "the device does not have shaderUniformBufferArrayDynamicIndexing"
                    : "the device does not have shaderStorageBufferArrayDynamicIndexing");
    }
    if (varies && !(uniform ? rules->uniform_varies : rules->storage_varies)) {
        return refuse_chain(
            c, at, name, "computed, and differs between invocations",
            uniform ? "the device does not have shaderUniformBufferArrayNonUniformIndexing"
                    : "the device does not have shaderStorageBufferArrayNonUniformIndexing");
    }
    if (!uniform && !varies && rules->one_element) {
        return refuse_chain(c, at, name, "computed",
                            "this driver uses one index for all invocations that run side by side, "
                            "and computes wrongly without an error where their indices differ");
    }
    if (uniform && rules->first_lane) {
        return refuse_chain(c, at, name, "computed",
                            "a driver that runs on a processor may take the index of an inactive "
                            "invocation, and compute wrongly without an error");
    }
    return true;
}

static const uint32_t *result_type(const struct check *c, const uint32_t *at) {
    const uint32_t *type = bhi_spv_length(at) > 2 ? bhi_module_definition(c->module, at[1]) : NULL;
    return type && bhi_spv_op(type) == SpvOpTypePointer ? type : NULL;
}

/* Does |at| move a pointer from one buffer to another? */
static bool moves(const struct check *c, const uint32_t *at) {
    if (bhi_spv_op(at) != SpvOpPtrAccessChain && bhi_spv_op(at) != SpvOpInBoundsPtrAccessChain) {
        return false;
    }
    const uint32_t *from = bhi_module_definition(c->module, at[3]);
    const uint32_t *type = from ? result_type(c, from) : NULL;
    return type &&
           (is_decorated(c, type[3], SpvDecorationBlock) ||
            is_decorated(c, type[3], SpvDecorationBufferBlock) || array_of(c, at[3]) != NO_ARRAY);
}

/* Is the pointer that |at| results in chosen from several? */
static bool chooses(const struct check *c, const uint32_t *at) {
    switch (bhi_spv_op(at)) {
    case SpvOpSelect:
    case SpvOpPhi:
    case SpvOpLoad:
    case SpvOpFunctionCall:
        return result_type(c, at);
    default:
        return moves(c, at);
    }
}

static const char *name_of(SpvOp op) {
    switch (op) {
    case SpvOpSelect:
        return "OpSelect";
    case SpvOpPhi:
        return "OpPhi";
    case SpvOpLoad:
        return "OpLoad";
    case SpvOpFunctionCall:
        return "OpFunctionCall";
    default:
        return "OpPtrAccessChain";
    }
}

/* SPIR-V allows chosen pointers only into storage buffers and workgroup memory. Validators do not
 * check this, and with uniform buffers drivers make the same errors as with computed indices. */
static bool check_choice(const struct check *c, const uint32_t *at) {
    if (!chooses(c, at) || result_type(c, at)[2] != SpvStorageClassUniform) {
        return true;
    }
    BHI_ERROR_SAY(c->error, BH_REASON_KERNEL_RULE,
                  "%s %%%u selects a pointer to a uniform buffer; SPIR-V allows that for storage "
                  "buffers and workgroup memory only: select between the loaded values",
                  name_of(bhi_spv_op(at)), at[2]);
    return false;
}

/* Which pointers lead to a buffer that is known only when the kernel runs: a byte for each id. */
struct picks {
    uint8_t *picked;
    bool changed;
};

static void pick(struct picks *picks, uint32_t id) {
    picks->changed |= !picks->picked[id];
    picks->picked[id] = 1;
}

static void pick_parameters(const struct check *c, struct picks *picks, const uint32_t *call) {
    const uint32_t *at = bhi_module_definition(c->module, call[3]);
    const uint32_t *end = &c->module->code[c->module->words];
    size_t argument = 4;
    for (; at && at < end && bhi_spv_op(at) != SpvOpFunctionEnd && bhi_spv_op(at) != SpvOpLabel &&
           argument < bhi_spv_length(call);
         at += bhi_spv_length(at)) {
        if (bhi_spv_op(at) == SpvOpFunctionParameter && picks->picked[call[argument++]]) {
            pick(picks, at[2]);
        }
    }
}

/* One pass over the functions. A parameter may belong to a function that an earlier pass has
 * handled. */
static void pick_all(const struct check *c, struct picks *picks) {
    const struct bhi_module *module = c->module;
    picks->changed = false;
    for (size_t i = 5; i < module->words; i += bhi_spv_length(&module->code[i])) {
        const uint32_t *at = &module->code[i];
        const bool follows =
            bhi_spv_op(at) == SpvOpCopyObject || bhi_spv_op(at) == SpvOpAccessChain ||
            bhi_spv_op(at) == SpvOpInBoundsAccessChain || bhi_spv_op(at) == SpvOpPtrAccessChain ||
            bhi_spv_op(at) == SpvOpInBoundsPtrAccessChain;
        if (chooses(c, at) || computed(c, at) != NO_ARRAY || (follows && picks->picked[at[3]])) {
            pick(picks, at[2]);
        }
        if (bhi_spv_op(at) == SpvOpFunctionCall) {
            pick_parameters(c, picks, at);
        }
    }
}

static bool check_lengths(const struct check *c) {
    const struct bhi_module *module = c->module;
    struct picks picks = {.picked = NULL};
    bool good = true;
    for (size_t i = 5; good && i < module->words; i += bhi_spv_length(&module->code[i])) {
        const uint32_t *at = &module->code[i];
        if (bhi_spv_op(at) != SpvOpArrayLength) {
            continue;
        }
        if (!picks.picked) { /* allocated here, because few kernels ask for a length */
            picks.picked = calloc(module->bound, 1);
            if (!picks.picked) {
                BHI_ERROR(c->error, BH_REASON_HOST_MEMORY, NULL, .text = "a check of the kernel");
                return false;
            }
            do {
                pick_all(c, &picks);
            } while (picks.changed);
        }
        good = !picks.picked[at[3]];
        if (!good) {
            BHI_ERROR_SAY(c->error, BH_REASON_KERNEL_RULE,
                          "OpArrayLength %%%u: the index of the buffer is computed; a driver that "
                          "runs on a processor may take the index of an inactive invocation, and "
                          "compute wrongly without an error: pass the lengths as push constants",
                          at[2]);
        }
    }
    free(picks.picked);
    return good;
}

bool bhi_array_indices_check(const struct bhi_module *module, const struct bhi_array_rules *rules,
                             struct bhi_error *error) {
    const struct check c = {.module = module, .rules = rules, .error = error};
    for (size_t i = 5; i < module->words; i += bhi_spv_length(&module->code[i])) {
        const uint32_t *at = &module->code[i];
        const enum arrays kind = computed(&c, at);
        if ((kind != NO_ARRAY && !check_chain(&c, at, kind)) || !check_choice(&c, at)) {
            return false;
        }
    }
    return !rules->first_lane || check_lengths(&c);
}
