#include "array_indices.h"

#include "vk_fault.h"

#include <bulkhead/bulkhead.h>

#define MAX_COPIES 64u

struct check {
    const struct bhi_module *module;
    const struct bhi_array_rules *rules;
    struct bhi_fault *fault;
};

static SpvOp opcode(const uint32_t *at) {
    return (SpvOp)(at[0] & SpvOpCodeMask);
}

static size_t length_of(const uint32_t *at) {
    return at[0] >> SpvWordCountShift;
}

static const uint32_t *definition(const struct check *c, uint32_t id) {
    const struct bhi_module *module = c->module;
    return id < module->bound && module->definitions[id] != 0
               ? &module->code[module->definitions[id]]
               : NULL;
}

static bool is_decorated(const struct check *c, uint32_t id, SpvDecoration decoration) {
    const struct bhi_module *module = c->module;
    for (size_t i = 5; i < module->words && opcode(&module->code[i]) != SpvOpFunction;
         i += length_of(&module->code[i])) {
        const uint32_t *at = &module->code[i];
        if (opcode(at) == SpvOpDecorate && at[1] == id && at[2] == (uint32_t)decoration) {
            return true;
        }
    }
    return false;
}

/* What a pointer that an access chain begins at leads to. */
enum arrays { NO_ARRAY, STORAGE_ARRAY, UNIFORM_ARRAY };

static enum arrays array_of(const struct check *c, uint32_t pointer) {
    const uint32_t *from = definition(c, pointer);
    const uint32_t *type = from != NULL && length_of(from) > 2 ? definition(c, from[1]) : NULL;
    if (type == NULL || opcode(type) != SpvOpTypePointer ||
        (type[2] != SpvStorageClassStorageBuffer && type[2] != SpvStorageClassUniform)) {
        return NO_ARRAY;
    }
    const uint32_t *array = definition(c, type[3]);
    if (array == NULL ||
        (opcode(array) != SpvOpTypeArray && opcode(array) != SpvOpTypeRuntimeArray)) {
        return NO_ARRAY;
    }
    /* An array of anything else lies in one buffer. */
    if (is_decorated(c, array[2], SpvDecorationBufferBlock)) {
        return STORAGE_ARRAY;
    }
    if (!is_decorated(c, array[2], SpvDecorationBlock)) {
        return NO_ARRAY;
    }
    return type[2] == SpvStorageClassUniform ? UNIFORM_ARRAY : STORAGE_ARRAY;
}

static bool is_chain(const uint32_t *at) {
    return (opcode(at) == SpvOpAccessChain || opcode(at) == SpvOpInBoundsAccessChain) &&
           length_of(at) > 4;
}

/* Which kind of array |at| takes a buffer of by a computed index. */
static enum arrays computed(const struct check *c, const uint32_t *at) {
    uint64_t value;
    if (!is_chain(at) || bhi_module_constant(c->module, at[4], &value)) {
        return NO_ARRAY;
    }
    return array_of(c, at[3]);
}

static bool refuse_chain(const struct check *c, const uint32_t *at, const char *kind,
                         const char *how, const char *why) {
    bhi_fault_set(c->fault, BH_INVALID_KERNEL,
                  "OpAccessChain %%%u: which %s buffer of an array it takes is %s; %s: index the "
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
        return refuse_chain(c, at, name, "computed",
                            uniform ? "the device has not shaderUniformBufferArrayDynamicIndexing"
                                    : "the device has not shaderStorageBufferArrayDynamicIndexing");
    }
    if (varies && !(uniform ? rules->uniform_varies : rules->storage_varies)) {
        return refuse_chain(c, at, name, "computed, and differs between invocations",
                            uniform
                                ? "the device has not shaderUniformBufferArrayNonUniformIndexing"
                                : "the device has not shaderStorageBufferArrayNonUniformIndexing");
    }
    if (uniform && rules->first_lane) {
        return refuse_chain(c, at, name, "computed",
                            "a driver that runs on a processor may take it from an invocation that "
                            "is switched off, and compute wrongly without an error");
    }
    return true;
}

/* Is the buffer that |pointer| leads to not known before the kernel runs? */
static bool is_picked(const struct check *c, uint32_t pointer) {
    const uint32_t *at = definition(c, pointer);
    for (uint32_t i = 0; at != NULL && i < MAX_COPIES; i++) {
        if (opcode(at) == SpvOpVariable) {
            return false;
        }
        if (!is_chain(at) && opcode(at) != SpvOpCopyObject) {
            return true;
        }
        if (computed(c, at) != NO_ARRAY) {
            return true;
        }
        at = definition(c, at[3]);
    }
    return true;
}

static bool check_length(const struct check *c, const uint32_t *at) {
    if (!is_picked(c, at[3])) {
        return true;
    }
    bhi_fault_set(c->fault, BH_INVALID_KERNEL,
                  "OpArrayLength %%%u: which buffer's length it is is computed; a driver that runs "
                  "on a processor may take the index from an invocation that is switched off, and "
                  "compute wrongly without an error: give the lengths as push constants",
                  at[2]);
    return false;
}

bool bhi_array_indices_check(const struct bhi_module *module, const struct bhi_array_rules *rules,
                             struct bhi_fault *fault) {
    const struct check c = {.module = module, .rules = rules, .fault = fault};
    bool any = false;
    for (size_t i = 5; i < module->words; i += length_of(&module->code[i])) {
        const uint32_t *at = &module->code[i];
        const enum arrays kind = computed(&c, at);
        any |= kind != NO_ARRAY;
        if (kind != NO_ARRAY && !check_chain(&c, at, kind)) {
            return false;
        }
    }
    for (size_t i = 5; any && rules->first_lane && i < module->words;
         i += length_of(&module->code[i])) {
        const uint32_t *at = &module->code[i];
        if (opcode(at) == SpvOpArrayLength && !check_length(&c, at)) {
            return false;
        }
    }
    return true;
}
