/* Execution modes of floats: whether denormals are kept, how results are rounded, whether zeros
 * keep their sign. A device supports each mode for some widths, or for none
 * (SPV_KHR_float_controls). */
#ifndef BHI_WORKER_SPIRV_FLOAT_MODES_H
#define BHI_WORKER_SPIRV_FLOAT_MODES_H

#include "worker/backend.h"
#include <spirv/unified1/spirv.h>

#define BHI_FLOAT_MODES 5u /* SpvExecutionModeDenormPreserve to …RoundingModeRTZ */

/* Which widths may have different modes in the same kernel. */
enum bhi_float_independence { BHI_FLOAT_NONE, BHI_FLOAT_32_ONLY, BHI_FLOAT_ALL };

struct bhi_float_modes {
    uint8_t widths[BHI_FLOAT_MODES]; /* a sum of 16, 32 and 64 */
    enum bhi_float_independence denorms, rounding;
};

/* Appends the capabilities of the modes that the device supports for any width. Returns how
 * many. */
size_t bhi_float_modes_capabilities(const struct bhi_float_modes *modes, SpvCapability *out,
                                    size_t capacity);
/* Does the device support what entry point |function| of a valid module asks for? If not, *error is
 * INVALID_KERNEL, and names mode, width and property. */
bool bhi_float_modes_check(const struct bhi_float_modes *modes, const uint32_t *code, size_t words,
                           uint32_t function, struct bhi_error *error);

#endif
