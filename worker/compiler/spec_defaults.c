#include "worker/compiler/spec_defaults.h"

#include "worker/compiler/inspect_types.h"

#include <stdio.h>
#include <string.h>

#define NAMED  4u
#define LOOKED 64u /* the highest number that is looked at: a hostile module can have any number */

/* Does the constant |id| have a SpecId, and was it given no value? */
static bool was_left(const struct bhi_module *module, uint32_t id) {
    const uint32_t spec_id = module->spec_ids[id];
    for (uint32_t i = 0; spec_id != 0 && i < module->constant_count; i++) {
        if (module->constants[i].constant_id == spec_id - 1) {
            return false;
        }
    }
    return spec_id != 0 && bhi_module_definition(module, id);
}

/* Finds the constants that were left. Sizes of the workgroup come first; of two constants with the
 * same SpecId only one is listed. */
static uint32_t find_left(const struct bhi_module *module, uint32_t hidden, uint32_t left[LOOKED]) {
    uint32_t count = 0, sizes = 0;
    for (uint32_t id = 1; id < module->bound && count < LOOKED; id++) {
        bool again = hidden && module->spec_ids[id] == hidden;
        for (uint32_t i = 0; i < count; i++) {
            again |= module->spec_ids[left[i]] == module->spec_ids[id];
        }
        if (again || !was_left(module, id)) {
            continue;
        }
        left[count++] = id;
        if (bhi_inspect_axis(module, id) >= 0) {
            memmove(&left[sizes + 1], &left[sizes], (count - 1 - sizes) * sizeof *left);
            left[sizes++] = id;
        }
    }
    return count;
}

static void print_value(const struct bhi_module *module, const uint32_t *at, char out[32]) {
    const uint32_t *type = bhi_module_definition(module, at[1]);
    if (bhi_spv_op(at) != SpvOpSpecConstant || !type) {
        snprintf(out, 32, "%s", bhi_spv_op(at) == SpvOpSpecConstantTrue ? "true" : "false");
        return;
    }
    const uint64_t bits = bhi_spv_length(at) > 4 ? at[3] | (uint64_t)at[4] << 32 : at[3];
    if (bhi_spv_op(type) == SpvOpTypeInt &&
        type[3] != 0) { /* narrow types are stored sign-extended */
        snprintf(out, 32, "%lld", type[2] > 32 ? (long long)bits : (long long)(int32_t)at[3]);
    } else if (bhi_spv_op(type) == SpvOpTypeFloat && type[2] == 32) {
        float value;
        memcpy(&value, &at[3], sizeof value);
        snprintf(out, 32, "%g", (double)value);
    } else if (bhi_spv_op(type) == SpvOpTypeFloat && type[2] == 64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        snprintf(out, 32, "%g", value);
    } else {
        snprintf(out, 32, bhi_spv_op(type) == SpvOpTypeFloat ? "0x%llx" : "%llu",
                 (unsigned long long)bits);
    }
}

/* Writes "0 (local size x)", "3 ("steps")" or "7". */
static void print_name(const struct bhi_module *module, uint32_t id, char out[96]) {
    char name[BHI_INSPECT_NAME];
    const int axis = bhi_inspect_axis(module, id);
    const int used = snprintf(out, 96, "%u", module->spec_ids[id] - 1);
    bhi_inspect_name(module, id, name);
    if (axis >= 0) {
        snprintf(out + used, 96 - (size_t)used, " (local size %c)", "xyz"[axis]);
    } else if (name[0] != '\0') {
        snprintf(out + used, 96 - (size_t)used, " (\"%s\")", name);
    }
}

uint32_t bhi_spec_defaults(const struct bhi_module *module, uint32_t hidden, char *out,
                           size_t size) {
    uint32_t left[LOOKED];
    const uint32_t count = find_left(module, hidden, left);
    out[0] = '\0';
    size_t used = 0;
    for (uint32_t i = 0; i < count && i < NAMED && used < size; i++) {
        char name[96], value[32];
        print_name(module, left[i], name);
        print_value(module, bhi_module_definition(module, left[i]), value);
        used += (size_t)(count == 1 ? snprintf(out, size,
                                               "specialization constant %s was left at its default "
                                               "%s",
                                               name, value)
                                    : snprintf(out + used, size - used, "%s%s %s",
                                               i == 0 ? "specialization constants were left at "
                                                        "their defaults: "
                                                      : ", ",
                                               name, value));
    }
    if (count > NAMED && used < size) {
        snprintf(out + used, size - used, ", and %u more", count - NAMED);
    }
    return count;
}
