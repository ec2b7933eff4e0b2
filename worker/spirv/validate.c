#include "worker/spirv/validate.h"

#include "base/text.h"
#include "worker/error.h"
#include "worker/spirv/catching.h"
#include "worker/spirv/debug_info.h"
#include "worker/spirv/index.h"
#include "worker/spirv/names.h"
#include "worker/spirv/tools.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <string.h>
#include <vulkan/vulkan.h>

/* Where the words of a module end. */
struct ending {
    size_t at, number, last; /* the last instruction: its first word, its number from 1, its code */
    size_t length;           /* as it says */
    bool inside;             /* it is longer than what is left */
};

/* Returns false if the words are none of a module that was cut. */
static bool find_ending(const uint32_t *code, size_t words, struct ending *out) {
    *out = (struct ending){.at = 5, .last = SpvOpNop};
    for (size_t i = 5; i < words; i += out->length) {
        out->at = i;
        out->number++;
        out->last = code[i] & SpvOpCodeMask;
        out->length = code[i] >> SpvWordCountShift;
        out->inside = out->length > words - i;
        if (out->length == 0 || out->inside) {
            return out->length > 0;
        }
    }
    return true;
}

/* A whole module ends with the end of a function. Says so of one that does not: then SPIRV-Tools'
 * rule is only a consequence. Returns false if it does. */
static bool set_cut(struct bhi_error *error, const uint32_t *code, size_t words, const char *rule) {
    static const char *const probably = "it was probably cut short";
    struct ending end;
    if (words < 5 || !find_ending(code, words, &end) ||
        (!end.inside && end.last == SpvOpFunctionEnd)) {
        return false;
    }
    if (end.inside) {
        BHI_ERROR_SAY(error, BH_REASON_NOT_VALID,
                      "its %zu words end within instruction %zu (Op%s), which has "
                      "%zu words from word %zu on: %s",
                      words, end.number, spvOpcodeString((uint32_t)end.last), end.length, end.at,
                      probably);
    } else if (words == 5) {
        BHI_ERROR_SAY(error, BH_REASON_NOT_VALID, "it has a header only: %s", probably);
    } else {
        BHI_ERROR_SAY(error, BH_REASON_NOT_VALID,
                      "its %zu words end with instruction %zu (Op%s), and not with "
                      "OpFunctionEnd: %s; %.250s",
                      words, end.number, spvOpcodeString((uint32_t)end.last), probably, rule);
    }
    return true;
}

/* Writes SPIRV-Tools' message on one line. */
static void set_rule(struct bhi_error *error, const uint32_t *code, size_t words,
                     spv_result_t result, spv_diagnostic diagnostic) {
    if (result == SPV_ERROR_OUT_OF_MEMORY || result == SPV_ERROR_INTERNAL) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the SPIR-V validator");
        return;
    }
    const char *rule = diagnostic && diagnostic->error ? diagnostic->error : "";
    if (!set_cut(error, code, words, rule)) {
        BHI_ERROR_SAY(error, BH_REASON_NOT_VALID, "%s (instruction %zu)", rule,
                      diagnostic ? diagnostic->position.index : 0);
    }
}

struct validation {
    spv_context context;
    spv_validator_options options;
    spv_const_binary_t binary;
    spv_diagnostic diagnostic;
    spv_result_t result;
};

static void run_validator(void *data) {
    struct validation *v = data;
    v->result = spvValidateWithOptions(v->context, v->options, &v->binary, &v->diagnostic);
}

bool bhi_validate_rules(const struct bhi_spirv_target *target, const uint32_t *code, size_t words,
                        struct bhi_error *error) {
    if (words >= 5 && code[4] != 0) {
        BHI_ERROR_SAY(error, BH_REASON_NOT_VALID,
                      "the header's schema word (word 4) is 0x%08x, it must be 0", code[4]);
        return false;
    }
    spv_context context = spvContextCreate(
        target->api_version >= VK_API_VERSION_1_3 ? SPV_ENV_VULKAN_1_3 : SPV_ENV_VULKAN_1_2);
    spv_validator_options options = spvValidatorOptionsCreate();
    if (!context || !options) {
        spvValidatorOptionsDestroy(options);
        spvContextDestroy(context);
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the SPIR-V validator");
        return false;
    }
    spvValidatorOptionsSetScalarBlockLayout(options, target->scalar_block_layout);
    spvValidatorOptionsSetUniformBufferStandardLayout(options, target->uniform_standard_layout);
    spvValidatorOptionsSetWorkgroupScalarBlockLayout(options, target->workgroup_scalar_layout);
    spvValidatorOptionsSetAllowLocalSizeId(options, target->local_size_id);
    char text[200] = "";
    struct validation v = {.context = context, .options = options, .binary = {code, words}};
    const enum bhi_caught caught = bhi_catching(run_validator, &v, text, sizeof text);
    if (caught == BHI_CAUGHT_OTHER) {
        v.result = SPV_ERROR_INVALID_BINARY;
        BHI_ERROR_SAY(error, BH_REASON_NOT_VALID, "the validator gave up: %s", text);
    } else if (caught != BHI_CAUGHT_NOTHING || v.result != SPV_SUCCESS) {
        v.result = caught != BHI_CAUGHT_NOTHING ? SPV_ERROR_OUT_OF_MEMORY : v.result;
        set_rule(error, code, words, v.result, v.diagnostic);
    }
    spvDiagnosticDestroy(v.diagnostic);
    spvValidatorOptionsDestroy(options);
    spvContextDestroy(context);
    return v.result == SPV_SUCCESS;
}

void bhi_no_entry(const uint32_t *code, size_t words, const char *entry, struct bhi_error *error) {
    char names[256] = "";
    size_t used = 0;
    for (const uint32_t *at = NULL; (at = bhi_spv_next(code, words, at));) {
        if (bhi_spv_op(at) == SpvOpEntryPoint && at[1] == SpvExecutionModelGLCompute &&
            used < sizeof names) {
            char name[64];
            const char *text = (const char *)&at[3];
            bhi_text_line(name, sizeof name, text, strlen(text));
            used += (size_t)snprintf(names + used, sizeof names - used, "%s\"%s\"",
                                     used > 0 ? ", " : "", name);
        }
    }
    BHI_ERROR(error, BH_REASON_ENTRY_POINT, entry, .text = used > 0 ? names : "none for compute");
}

static bool capability_allowed(const struct bhi_spirv_target *target, uint32_t capability) {
    for (size_t i = 0; i < target->capability_count; i++) {
        if ((uint32_t)target->capabilities[i] == capability) {
            return true;
        }
    }
    return false;
}

/* Returns the literal string in |room| words, or NULL if it does not end there. */
static const char *literal(const uint32_t *at, size_t room) {
    const char *text = (const char *)at;
    return strnlen(text, room * sizeof *at) < room * sizeof *at ? text : NULL;
}

static bool extension_allowed(const struct bhi_spirv_target *target, const char *name,
                              struct bhi_error *error) {
    for (size_t i = 0; i < target->extension_count; i++) {
        if (strcmp(target->extensions[i], name) == 0) {
            return true;
        }
    }
    BHI_ERROR(error, BH_REASON_EXTENSION, name);
    return false;
}

/* Allows GLSL's functions, and imports that no driver executes. */
static bool import_allowed(const char *name, struct bhi_error *error) {
    if (strcmp(name, "GLSL.std.450") == 0 || bhi_debug_info_import(name)) {
        return true;
    }
    BHI_ERROR(error, BH_REASON_INSTRUCTION_SET, name);
    return false;
}

/* Does the entry point at word |entry| of a valid module list |variable|? */
static bool lists(const uint32_t *code, size_t entry, uint32_t variable) {
    const uint32_t *at = &code[entry];
    const size_t length = at[0] >> SpvWordCountShift;
    for (size_t i = 3 + strlen((const char *)&at[3]) / 4 + 1; i < length; i++) {
        if (at[i] == variable) {
            return true;
        }
    }
    return false;
}

/* Only built-in inputs ever get values. Validators accept others, and drivers crash on them. */
static bool check_interface(const uint32_t *code, size_t words, size_t entry,
                            struct bhi_error *error) {
    for (const uint32_t *at = NULL; (at = bhi_spv_next(code, words, at));) {
        if (bhi_spv_op(at) == SpvOpDecorate && at[2] == SpvDecorationLocation &&
            lists(code, entry, at[1])) {
            BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                          "%%%u is an input or output with a location (OpDecorate Location), but a "
                          "kernel has only built-in ones: pass it in a buffer or a push constant",
                          at[1]);
            return false;
        }
    }
    return true;
}

/* -- execution modes of floats ----------------------------------------------------------------- */

static const struct {
    SpvExecutionMode mode;
    SpvCapability capability;
    const char *name;
} float_modes[BHI_FLOAT_MODES] = {
#define MODE(name) {SpvExecutionMode##name, SpvCapability##name, #name}
    MODE(DenormPreserve),  MODE(DenormFlushToZero), MODE(SignedZeroInfNanPreserve),
    MODE(RoundingModeRTE), MODE(RoundingModeRTZ),
#undef MODE
};
enum { DENORM_PRESERVE, DENORM_FLUSH, SIGNED_ZERO, ROUND_EVEN, ROUND_ZERO };

size_t bhi_float_modes_capabilities(const struct bhi_float_modes *modes, SpvCapability *out,
                                    size_t capacity) {
    size_t count = 0;
    for (uint32_t i = 0; i < BHI_FLOAT_MODES && count < capacity; i++) {
        if (modes->widths[i] != 0) {
            out[count++] = float_modes[i].capability;
        }
    }
    return count;
}

/* Checks that modes |a| and |b|, which exclude each other, are not asked for the same width, nor
 * for two widths that must have the same mode on this device. */
static bool agree(const uint8_t asked[BHI_FLOAT_MODES], uint32_t a, uint32_t b,
                  enum bhi_float_independence independence, const char *property,
                  struct bhi_error *error) {
    for (uint32_t left = 16; left <= 64; left *= 2) {
        for (uint32_t right = 16; right <= 64; right *= 2) {
            const bool tied = left == right || independence == BHI_FLOAT_NONE ||
                              (independence == BHI_FLOAT_32_ONLY && left != 32 && right != 32);
            if (!tied || !(asked[a] & left) || !(asked[b] & right)) {
                continue;
            }
            if (left == right) {
                BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                              "execution modes %s and %s exclude each other, and both are declared "
                              "for floats of %u bits: remove one",
                              float_modes[a].name, float_modes[b].name, left);
            } else {
                BHI_ERROR_SAY(
                    error, BH_REASON_KERNEL_RULE,
                    "execution mode %s is declared for floats of %u bits, and %s for those of %u "
                    "bits; this device has the same mode for both (%s): declare one mode",
                    float_modes[a].name, left, float_modes[b].name, right, property);
            }
            return false;
        }
    }
    return true;
}

/* Does the device support what entry point |function| of a valid module asks for? If not, *error is
 * INVALID_KERNEL, and names mode, width and property. */
static bool check_float_modes(const struct bhi_float_modes *modes, const uint32_t *code,
                              size_t words, uint32_t function, struct bhi_error *error) {
    uint8_t asked[BHI_FLOAT_MODES] = {0};
    for (const uint32_t *at = NULL; (at = bhi_spv_next(code, words, at));) {
        if (bhi_spv_op(at) != SpvOpExecutionMode || at[1] != function) {
            continue;
        }
        for (uint32_t m = 0; m < BHI_FLOAT_MODES; m++) {
            if (at[2] != (uint32_t)float_modes[m].mode) {
                continue;
            }
            const uint32_t width = at[3];
            if (width != 16 && width != 32 && width != 64) {
                BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                              "execution mode %s for floats of %u bits: there are 16, 32 and 64",
                              float_modes[m].name, width);
                return false;
            }
            if (!(modes->widths[m] & width)) {
                BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                              "execution mode %s for floats of %u bits is not supported by this "
                              "device (shader%sFloat%u): compile the kernel without it",
                              float_modes[m].name, width, float_modes[m].name, width);
                return false;
            }
            asked[m] |= (uint8_t)width;
        }
    }
    return agree(asked, DENORM_PRESERVE, DENORM_FLUSH, modes->denorms, "denormBehaviorIndependence",
                 error) &&
           agree(asked, ROUND_EVEN, ROUND_ZERO, modes->rounding, "roundingModeIndependence", error);
}

/* -- all of it --------------------------------------------------------------------------------- */

bool bhi_validate(const struct bhi_spirv_target *target, const uint32_t *code, size_t words,
                  const char *entry, struct bhi_error *error) {
    if (words < 5 || code[0] != SpvMagicNumber) {
        BHI_ERROR_SAY(error, BH_REASON_NOT_VALID, "it must begin with the magic number 0x07230203");
        return false;
    }
    /* The driver gets the module unchanged, so what a driver must not see is checked first; its
     * message is better than the validator's. Nothing is assumed about the words. */
    bool entry_found = false;
    uint32_t function = 0;
    size_t listed = 0;
    SpvExecutionModel model = SpvExecutionModelMax;
    for (size_t i = 5; i < words;) {
        const uint32_t *at = &code[i];
        size_t length = at[0] >> SpvWordCountShift;
        if (length == 0 || length > words - i) {
            break; /* the validator's message is better */
        }
        SpvOp op = (SpvOp)(at[0] & SpvOpCodeMask);
        if (op == SpvOpFunction) {
            break;
        }
        if (op == SpvOpCapability && length == 2) {
            if (at[1] == SpvCapabilityPhysicalStorageBufferAddresses) {
                BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                              "physical storage buffer pointers are not allowed: they reach any "
                              "address (capability PhysicalStorageBufferAddresses)");
                return false;
            }
            if (!capability_allowed(target, at[1])) {
                BHI_ERROR(error, BH_REASON_CAPABILITY, bhi_capability_name(at[1]), .value = at[1]);
                return false;
            }
        } else if (op == SpvOpExtension && length >= 2 && literal(&at[1], length - 1)) {
            if (!extension_allowed(target, literal(&at[1], length - 1), error)) {
                return false;
            }
        } else if (op == SpvOpExtInstImport && length >= 3 && literal(&at[2], length - 2)) {
            if (!import_allowed(literal(&at[2], length - 2), error)) {
                return false;
            }
        } else if (op == SpvOpMemoryModel && length == 3 && at[1] != SpvAddressingModelLogical) {
            BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                          "the addressing model must be Logical: physical pointers reach any "
                          "address");
            return false;
        } else if (op == SpvOpEntryPoint && length >= 4) {
            size_t room = (length - 3) * sizeof(uint32_t);
            if (strnlen((const char *)&at[3], room) < room &&
                strcmp((const char *)&at[3], entry) == 0) {
                if (!entry_found || at[1] == SpvExecutionModelGLCompute) {
                    model = (SpvExecutionModel)at[1];
                    function = at[2];
                    listed = i;
                }
                entry_found = true;
            }
        }
        i += length;
    }
    if (!bhi_validate_rules(target, code, words, error)) {
        return false;
    }
    if (!entry_found) {
        bhi_no_entry(code, words, entry, error);
        return false;
    }
    if (model != SpvExecutionModelGLCompute) {
        BHI_ERROR(error, BH_REASON_NOT_COMPUTE, entry,
                  .text = bhi_execution_model_name((uint32_t)model));
        return false;
    }
    return check_interface(code, words, listed, error) &&
           check_float_modes(&target->floats, code, words, function, error);
}
