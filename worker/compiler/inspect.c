#include "worker/compiler/inspect.h"

#include "base/owner.h"
#include "base/sort.h"
#include "base/text.h"
#include "worker/compiler/inspect_types.h"
#include "worker/error.h"
#include "worker/guard/guard.h"
#include "worker/spirv/debug_info.h"
#include "worker/spirv/limits.h"
#include "worker/spirv/names.h"
#include "worker/spirv/reflect.h"
#include "worker/spirv/validate.h"

#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <spirv-tools/libspirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

/* The number of descriptor sets that is assumed, because no device is asked: as many as lavapipe
 * has, or, if the kernel could not run with these, the highest number possible. */
#define FEW_SETS  8u
#define MOST_SETS 32u

/* -- what is declared before anything else ---------------------------------------------------- */

static void take_capability(struct bhi_inspection *out, uint32_t capability) {
    if (out->capabilities < BHI_INSPECT_CAPABILITIES) {
        char *name = out->capability[out->capabilities++];
        snprintf(name, BHI_INSPECT_NAME, "%s", bhi_capability_name(capability));
        if (strcmp(name, "unnamed") == 0) {
            snprintf(name, BHI_INSPECT_NAME, "%u", capability);
        }
    }
}

/* Takes an entry point. Returns whether it is the one called |entry|. */
static bool take_entry(struct bhi_inspection *out, const uint32_t *at, const char *entry) {
    const char *name = (const char *)&at[3];
    if (at[1] != SpvExecutionModelGLCompute) {
        return false;
    }
    if (out->entries < BHI_INSPECT_ENTRIES) {
        bhi_text_line(out->entry[out->entries++], BHI_INSPECT_NAME, name, strlen(name));
    }
    return strcmp(name, entry) == 0;
}

/* The module must be valid. Returns false if it has no such entry point. */
static bool take_head(struct bhi_inspection *out, const uint32_t *code, size_t words,
                      const char *entry) {
    bool found = false;
    out->spirv_version = (code[1] >> 8) & 0xffffu;
    for (const uint32_t *at = NULL; (at = bhi_spv_next(code, words, at));) {
        if (bhi_spv_op(at) == SpvOpCapability) {
            take_capability(out, at[1]);
        } else if (bhi_spv_op(at) == SpvOpEntryPoint) {
            found |= take_entry(out, at, entry);
        }
    }
    return found;
}

/* -- specialization constants ----------------------------------------------------------------- */

static bh_dtype dtype_of(const uint32_t *type) {
    const bool is_signed = bhi_spv_op(type) == SpvOpTypeInt && type[3] != 0;
    switch (bhi_spv_op(type)) {
    case SpvOpTypeBool:
        return BH_DTYPE_BOOL;
    case SpvOpTypeFloat:
        return type[2] == 16 ? BH_DTYPE_F16 : type[2] == 32 ? BH_DTYPE_F32 : BH_DTYPE_F64;
    case SpvOpTypeInt:
        switch (type[2]) {
        case 8:
            return is_signed ? BH_DTYPE_I8 : BH_DTYPE_U8;
        case 16:
            return is_signed ? BH_DTYPE_I16 : BH_DTYPE_U16;
        case 32:
            return is_signed ? BH_DTYPE_I32 : BH_DTYPE_U32;
        default:
            return is_signed ? BH_DTYPE_I64 : BH_DTYPE_U64;
        }
    default:
        return BH_DTYPE_NONE;
    }
}

static bool take_constant(struct bhi_inspection *out, const struct bhi_module *module, uint32_t id,
                          struct bhi_error *error) {
    const uint32_t *at = bhi_module_definition(module, id);
    const uint32_t *type = !at ? NULL : bhi_module_definition(module, at[1]);
    const uint32_t constant_id = module->spec_ids[id] - 1;
    for (uint32_t i = 0; i < out->constants; i++) {
        if (out->constant[i].constant_id == constant_id) {
            return true; /* two constants may share an id */
        }
    }
    if (!type || dtype_of(type) == BH_DTYPE_NONE) {
        return true;
    }
    if (out->constants == BHI_INSPECT_CONSTANTS) {
        BHI_ERROR_SAY(error, BH_REASON_KERNEL_LIMIT,
                      "the module has more than %u specialization constants",
                      BHI_INSPECT_CONSTANTS);
        return false;
    }
    struct bhi_inspected_constant *one = &out->constant[out->constants++];
    one->constant_id = constant_id;
    one->dtype = (uint32_t)dtype_of(type);
    if (bhi_spv_op(at) == SpvOpSpecConstantTrue) {
        one->bits = 1;
    } else if (bhi_spv_op(at) == SpvOpSpecConstant) {
        one->bits = bhi_spv_length(at) > 4 ? at[3] | (uint64_t)at[4] << 32 : at[3];
    }
    if (bhi_spv_op(type) != SpvOpTypeBool && type[2] < 32) {
        one->bits &= (UINT64_C(1) << type[2]) - 1; /* the module stores it sign-extended */
    }
    bhi_inspect_name(module, id, one->name);
    const int axis = bhi_inspect_axis(module, id);
    if (one->name[0] == '\0' && axis >= 0) {
        snprintf(one->name, sizeof one->name, "local_size_%c", "xyz"[axis]);
    }
    return true;
}

BHI_ORDER(by_constant_id, struct bhi_inspected_constant, constant_id)

static bool take_constants(struct bhi_inspection *out, const struct bhi_module *module,
                           struct bhi_error *error) {
    for (uint32_t id = 1; id < module->bound; id++) {
        if (module->spec_ids[id] != 0 && !take_constant(out, module, id, error)) {
            return false;
        }
    }
    qsort(out->constant, out->constants, sizeof out->constant[0], by_constant_id);
    return true;
}

/* -- what it binds ---------------------------------------------------------------------------- */

static void take_bindings(struct bhi_inspection *out,
                          const struct bhi_module_bindings *reflection) {
    out->bindings = reflection->binding_count;
    for (uint32_t i = 0; i < reflection->binding_count; i++) {
        const struct bhi_reflected_binding *from = &reflection->bindings[i];
        struct bhi_inspected_binding *to = &out->binding[i];
        to->set = from->set;
        to->binding = from->binding;
        to->kind = from->kind;
        to->access = from->access;
        to->count = from->count;
        to->measured = from->measured;
        memcpy(to->name, from->name, sizeof to->name);
    }
}

/* Adds |type| to the declarations at one binding: variables of several types may share it, and a
 * buffer may be any of them. */
static void add_type(char out[BHI_INSPECT_NAME], const char type[BHI_INSPECT_NAME]) {
    static const char between[] = " | ";
    const size_t used = strlen(out), length = strlen(type), gap = sizeof between - 1;
    for (const char *at = out; *at != '\0';) {
        const char *end = strstr(at, between);
        const size_t one = end ? (size_t)(end - at) : strlen(at);
        if (one == length && memcmp(at, type, length) == 0) {
            return;
        }
        at += end ? one + gap : one;
    }
    if (used == 0) {
        memcpy(out, type, length + 1);
    } else if (used + gap + length < BHI_INSPECT_NAME) {
        memcpy(out + used, between, gap);
        memcpy(out + used + gap, type, length + 1);
    } else {
        const size_t cut = used < BHI_INSPECT_NAME - 4 ? used : BHI_INSPECT_NAME - 4;
        strcpy(out + cut, "...");
    }
}

/* Returns the type of one buffer, also if |type| is an array of buffers. */
static uint32_t one_buffer(const struct bhi_module *module, uint32_t type) {
    const uint32_t *at = bhi_module_definition(module, type);
    return at && bhi_spv_op(at) == SpvOpTypeArray ? at[2] : type;
}

static void take_buffer_type(struct bhi_inspection *out, const struct bhi_module *module,
                             const uint32_t *variable) {
    uint32_t set, binding;
    if (!bhi_inspect_decoration(module, variable[2], SpvDecorationDescriptorSet, &set) ||
        !bhi_inspect_decoration(module, variable[2], SpvDecorationBinding, &binding)) {
        return;
    }
    for (uint32_t i = 0; i < out->bindings; i++) {
        struct bhi_inspected_binding *one = &out->binding[i];
        if (one->set == set && one->binding == binding &&
            bhi_module_uses(module, variable[2]) != 0) {
            char type[BHI_INSPECT_NAME];
            bhi_inspect_type(module, one_buffer(module, bhi_inspect_pointee(module, variable)),
                             type);
            add_type(one->type, type);
        }
    }
}

static void take_variables(struct bhi_inspection *out, const struct bhi_module *module) {
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module->code, module->words, at));) {
        if (bhi_spv_op(at) != SpvOpVariable) {
            continue;
        }
        if (at[3] == SpvStorageClassStorageBuffer || at[3] == SpvStorageClassUniform) {
            take_buffer_type(out, module, at);
        } else if (at[3] == SpvStorageClassPushConstant && out->push_bytes > 0 &&
                   (out->members == 0 || bhi_module_uses(module, at[2]) != 0)) {
            memset(out->member, 0, sizeof out->member);
            out->members =
                bhi_inspect_members(module, bhi_inspect_pointee(module, at), out->member);
        }
    }
}

static bool take_interface(struct bhi_inspection *out, const struct bhi_module *module,
                           const char *entry, struct bhi_error *error) {
    struct bhi_module_bindings *reflection = malloc(sizeof *reflection);
    if (!reflection) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "an inspection");
        return false;
    }
    const bool good = bhi_reflect(module->code, module->words, entry, module->constants,
                                  module->constant_count, reflection, error);
    if (good) {
        memcpy(out->local_size, reflection->local_size, sizeof out->local_size);
        out->push_bytes = reflection->push_bytes;
        out->shared_bytes = reflection->shared_bytes;
        take_bindings(out, reflection);
        take_variables(out, module);
    }
    free(reflection);
    return good;
}

/* -- guarded ---------------------------------------------------------------------------------- */

static bool disassemble(const uint32_t *code, size_t words, struct bhi_inspection *out, char *text,
                        uint64_t room, struct bhi_error *error) {
    spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
    spv_text disassembly = NULL;
    spv_diagnostic diagnostic = NULL;
    const spv_result_t result = !context
                                    ? SPV_ERROR_OUT_OF_MEMORY
                                    : spvBinaryToText(context, code, words,
                                                      SPV_BINARY_TO_TEXT_OPTION_INDENT |
                                                          SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES,
                                                      &disassembly, &diagnostic);
    bool good = false;
    if (result != SPV_SUCCESS) {
        BHI_ERROR_SAY(error, BH_REASON_HOST_MEMORY, "a disassembly: %s",
                      diagnostic && diagnostic->error ? diagnostic->error : "out of memory");
    } else if (disassembly->length > BHI_INSPECT_MAX_TEXT) {
        BHI_ERROR_SAY(error, BH_REASON_KERNEL_LIMIT, "the disassembly has %zu bytes, over %u",
                      disassembly->length, BHI_INSPECT_MAX_TEXT);
    } else {
        good = true;
        out->text_bytes = disassembly->length;
        if (disassembly->length <= room) {
            memcpy(text, disassembly->str, disassembly->length);
        }
    }
    spvDiagnosticDestroy(diagnostic);
    spvTextDestroy(disassembly);
    spvContextDestroy(context);
    return good;
}

/* A guarded kernel needs a free set. A device with FEW_SETS has none if the kernel declares a set
 * beyond these, or declares these and has no binding. */
static uint32_t sets_of_device(const struct bhi_inspection *out, const struct bhi_module *module) {
    if (out->bindings == 0) {
        return MOST_SETS;
    }
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module->code, module->words, at));) {
        if (bhi_spv_op(at) == SpvOpDecorate && at[2] == SpvDecorationDescriptorSet &&
            at[3] >= FEW_SETS) {
            return MOST_SETS;
        }
    }
    return FEW_SETS;
}

static bool take_guarded(struct bhi_inspection *out, const struct bhi_module *module,
                         const struct bhi_spirv_target *target, const char *entry, char *text,
                         uint64_t room, struct bhi_error *error) {
    const struct bhi_guard_options options = {
        .entry = entry,
        .constants = module->constants,
        .constant_count = module->constant_count,
        .max_sets = sets_of_device(out, module),
        .zero_initialize = true,
    };
    struct bhi_guarded guarded;
    if (!bhi_guard(module->code, module->words, &options, &guarded, error)) {
        return false;
    }
    out->guard_set = guarded.set;
    out->guard_binding = guarded.binding;
    out->loops = guarded.loops;
    out->left_alone = guarded.left_alone;
    out->covered = guarded.covered;
    out->lowered = guarded.lowered;
    out->polled = guarded.polled;
    out->clamps = guarded.clamps;
    out->zeroed = guarded.zeroed;
    const bool good = bhi_validate_rules(target, guarded.code, guarded.words, error) &&
                      disassemble(guarded.code, guarded.words, out, text, room, error);
    bhi_guarded_fini(&guarded);
    return good;
}

/* -- all of it -------------------------------------------------------------------------------- */

static bool describe(const uint32_t *code, size_t words, const char *entry,
                     const struct bhi_spec_constant *constants, uint32_t constant_count,
                     bool guarded, struct bhi_inspection *out, char *text, uint64_t room,
                     struct bhi_error *error) {
    /* The target is a device that can do everything. */
    const struct bhi_spirv_target target = {.api_version = VK_API_VERSION_1_3,
                                            .scalar_block_layout = true,
                                            .uniform_standard_layout = true,
                                            .workgroup_scalar_layout = true,
                                            .local_size_id = true};
    /* As in worker/vulkan/kernel.c: the limits come first, because they protect the validator. */
    if ((guarded && !bhi_guard_limits(code, words, error)) ||
        !bhi_validate_rules(&target, code, words, error)) {
        return false;
    }
    if (!take_head(out, code, words, entry)) {
        bhi_no_entry(code, words, entry, error);
        return false;
    }
    struct bhi_module module;
    if ((guarded &&
         !bhi_guard_limits_sizes(code, words, entry, constants, constant_count, error)) ||
        !bhi_module_init(&module, code, words, entry, constants, constant_count, error)) {
        return false;
    }
    const bool good = take_constants(out, &module, error) &&
                      take_interface(out, &module, entry, error) &&
                      (!guarded || take_guarded(out, &module, &target, entry, text, room, error));
    bhi_module_fini(&module);
    return good;
}

bool bhi_inspect(const uint32_t *code, size_t words, const char *entry,
                 const struct bhi_spec_constant *constants, uint32_t constant_count, bool guarded,
                 struct bhi_inspection *out, char *text, uint64_t room, struct bhi_error *error) {
    memset(out, 0, sizeof *out);
    BHI_AUTO_FREE uint32_t *copy = malloc(words > 0 ? words * sizeof *code : 1);
    if (!copy) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "an inspection");
        return false;
    }
    memcpy(copy, code, words * sizeof *code);
    words = bhi_debug_info_normalise(copy, words);
    if (describe(copy, words, entry, constants, constant_count, guarded, out, text, room, error)) {
        return true;
    }
    if (error->status != BH_INVALID_KERNEL && error->status != BH_LIMIT_EXCEEDED) {
        return false;
    }
    memset(out, 0, sizeof *out);
    out->refused = (uint32_t)error->status;
    snprintf(out->reason, sizeof out->reason, "%s", bhi_error_line(error));
    return true;
}
