/* How a kernel picks a buffer from an array: by constants, or by indices that it computes. Computed
 * indices need features of the device, and some devices handle them wrongly without an error. */
#ifndef BHI_WORKER_SPIRV_ARRAY_INDICES_H
#define BHI_WORKER_SPIRV_ARRAY_INDICES_H

#include "worker/spirv/module.h"

/* What the device handles correctly. */
struct bhi_array_rules {
    bool storage, uniform;               /* computed indices */
    bool storage_varies, uniform_varies; /* indices that differ between invocations (NonUniform) */
    /* For drivers on a processor. Of an array of storage buffers, all invocations that run side by
     * side use the buffer that the first of them picks, unless the index is NonUniform. */
    bool one_element;
    /* For drivers on a processor. A uniform buffer, and the length of any buffer, is looked up once
     * for all invocations that run side by side, with the index of the first one, even if that
     * invocation is inactive. */
    bool first_lane;
};

/* |module| must be valid. Returns false with *error: INVALID_KERNEL, and a text that names the
 * instruction and says what to do. */
bool bhi_array_indices_check(const struct bhi_module *module, const struct bhi_array_rules *rules,
                             struct bhi_error *error);

#endif
