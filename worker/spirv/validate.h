/* Decides whether this device may get a SPIR-V module. First SPIRV-Tools' rules for Vulkan, then
 * ours: allow-lists of capabilities and of extensions, no physical pointers, one compute entry
 * point of the given name. Allowed are those that the device advertises and that were enabled:
 * drivers accept more than they support, and then compute wrongly. docs/kernels.md has the lists. */
#ifndef BHI_WORKER_SPIRV_VALIDATE_H
#define BHI_WORKER_SPIRV_VALIDATE_H

#include "worker/backend.h"
#include <spirv/unified1/spirv.h>

/* Execution modes of floats: whether denormals are kept, how results are rounded, whether zeros
 * keep their sign. A device supports each mode for some widths, or for none
 * (SPV_KHR_float_controls). */
#define BHI_FLOAT_MODES 5u /* SpvExecutionModeDenormPreserve to …RoundingModeRTZ */

/* Which widths may have different modes in the same kernel. */
enum bhi_float_independence { BHI_FLOAT_NONE, BHI_FLOAT_32_ONLY, BHI_FLOAT_ALL };

struct bhi_float_modes {
    uint8_t widths[BHI_FLOAT_MODES]; /* a sum of 16, 32 and 64 */
    enum bhi_float_independence denorms, rounding;
};

struct bhi_spirv_target {
    uint32_t api_version; /* as VK_MAKE_API_VERSION */
    const SpvCapability *capabilities;
    size_t capability_count;
    const char *const *extensions; /* SPV_… */
    size_t extension_count;
    bool scalar_block_layout;
    bool uniform_standard_layout;
    bool workgroup_scalar_layout;
    bool local_size_id;
    struct bhi_float_modes floats;
};

/* Returns true, or false with *error: INVALID_KERNEL and the text of the rule. */
bool bhi_validate(const struct bhi_spirv_target *target, const uint32_t *code, size_t words,
                  const char *entry, struct bhi_error *error);
/* Checks SPIRV-Tools' rules alone. */
bool bhi_validate_rules(const struct bhi_spirv_target *target, const uint32_t *code, size_t words,
                        struct bhi_error *error);
/* Sets the error that a valid module has no compute entry point |entry|, and names those that it
 * has. */
void bhi_no_entry(const uint32_t *code, size_t words, const char *entry, struct bhi_error *error);

/* Appends the capabilities of the modes that the device supports for any width. Returns how
 * many. */
size_t bhi_float_modes_capabilities(const struct bhi_float_modes *modes, SpvCapability *out,
                                    size_t capacity);

#endif
