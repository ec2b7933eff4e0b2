/* Which buffer of an array a kernel takes: by constants, or by indices that it computes. Devices
 * need features for the latter, and some compute it wrongly without an error. */
#ifndef BHI_WORKER_SPIRV_ARRAY_INDICES_H
#define BHI_WORKER_SPIRV_ARRAY_INDICES_H

#include "worker/spirv/module.h"

/* What a device does right. */
struct bhi_array_rules {
    bool storage, uniform;               /* an index that is computed */
    bool storage_varies, uniform_varies; /* one that differs between invocations (NonUniform) */
    bool one_element; /* a driver that runs on a processor: of an array of storage buffers all
                         invocations that run side by side take the one that the first of them asks
                         for, unless it is NonUniform */
    bool first_lane; /* a driver that runs on a processor: it looks a uniform buffer, and the length
                        of any buffer, up once for all invocations that run side by side, with the
                        index that the first of them has, even where that one is switched off */
};

/* |module| is of a valid module. False with *error: INVALID_KERNEL, and a text that names the
 * instruction and says what to do. */
bool bhi_array_indices_check(const struct bhi_module *module, const struct bhi_array_rules *rules,
                             struct bhi_error *error);

#endif
