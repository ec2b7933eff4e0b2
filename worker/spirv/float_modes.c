#include "worker/spirv/float_modes.h"

#include "worker/error.h"

#include <bulkhead/bulkhead.h>

static const struct {
    SpvExecutionMode mode;
    SpvCapability capability;
    const char *name;
} table[BHI_FLOAT_MODES] = {
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
            out[count++] = table[i].capability;
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
                              table[a].name, table[b].name, left);
            } else {
                BHI_ERROR_SAY(
                    error, BH_REASON_KERNEL_RULE,
                    "execution mode %s is declared for floats of %u bits, and %s for those of %u "
                    "bits; this device has the same mode for both (%s): declare one mode",
                    table[a].name, left, table[b].name, right, property);
            }
            return false;
        }
    }
    return true;
}

bool bhi_float_modes_check(const struct bhi_float_modes *modes, const uint32_t *code, size_t words,
                           uint32_t function, struct bhi_error *error) {
    uint8_t asked[BHI_FLOAT_MODES] = {0};
    for (size_t i = 5; i < words && (code[i] & SpvOpCodeMask) != SpvOpFunction;
         i += code[i] >> SpvWordCountShift) {
        const uint32_t *at = &code[i];
        if ((at[0] & SpvOpCodeMask) != SpvOpExecutionMode || at[1] != function) {
            continue;
        }
        for (uint32_t m = 0; m < BHI_FLOAT_MODES; m++) {
            if (at[2] != (uint32_t)table[m].mode) {
                continue;
            }
            const uint32_t width = at[3];
            if (width != 16 && width != 32 && width != 64) {
                BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                              "execution mode %s for floats of %u bits: there are 16, 32 and 64",
                              table[m].name, width);
                return false;
            }
            if (!(modes->widths[m] & width)) {
                BHI_ERROR_SAY(error, BH_REASON_KERNEL_RULE,
                              "execution mode %s for floats of %u bits is not supported by this "
                              "device (shader%sFloat%u): compile the kernel without it",
                              table[m].name, width, table[m].name, width);
                return false;
            }
            asked[m] |= (uint8_t)width;
        }
    }
    return agree(asked, DENORM_PRESERVE, DENORM_FLUSH, modes->denorms, "denormBehaviorIndependence",
                 error) &&
           agree(asked, ROUND_EVEN, ROUND_ZERO, modes->rounding, "roundingModeIndependence", error);
}
