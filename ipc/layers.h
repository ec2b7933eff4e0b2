/* The sandbox layers of layers.def as numbers and bits. */
#ifndef BHI_IPC_LAYERS_H
#define BHI_IPC_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

enum bhi_layer {
#define BHI_LAYER(NAME, number, need, what, advice) BHI_LAYER_##NAME = number,
#include "ipc/layers.def"
    BHI_LAYER_COUNT
};

struct bhi_layer_info {
    enum bhi_layer layer;
    bool required;
    const char *name;   /* lower case, with '-' */
    const char *what;   /* what it takes away from a worker */
    const char *advice; /* what to do if it is absent */
};

/* NULL for an unknown number. */
const struct bhi_layer_info *bhi_layer_info(uint32_t layer);

/* Device features that we use (message device, field features). */
#define BHI_FEATURE_HOST_IMPORT     (1ull << 0) /* VK_EXT_external_memory_host: required */
#define BHI_FEATURE_ROBUST_BUFFER   (1ull << 1) /* robustBufferAccess */
#define BHI_FEATURE_ROBUST_BUFFER_2 (1ull << 2) /* VK_EXT_robustness2 robustBufferAccess2 */
#define BHI_FEATURE_NULL_DESCRIPTOR (1ull << 3)
#define BHI_FEATURE_ZERO_WORKGROUP  (1ull << 4) /* zeroInitializeWorkgroupMemory */
#define BHI_FEATURE_DEVICE_FAULT    (1ull << 5) /* VK_EXT_device_fault */
#define BHI_FEATURE_TIMELINE        (1ull << 6)
#define BHI_FEATURE_INT8            (1ull << 7)
#define BHI_FEATURE_INT16           (1ull << 8)
#define BHI_FEATURE_INT64           (1ull << 9)
#define BHI_FEATURE_FLOAT16         (1ull << 10)
#define BHI_FEATURE_FLOAT64         (1ull << 11)
#define BHI_FEATURE_STORAGE_8       (1ull << 12)
#define BHI_FEATURE_STORAGE_16      (1ull << 13)
#define BHI_FEATURE_SUBGROUP_ARITH  (1ull << 14)
#define BHI_FEATURE_LOCAL_VISIBLE   (1ull << 15) /* device-local host-visible memory */
#define BHI_FEATURE_MEMORY_BUDGET   (1ull << 16)
#define BHI_FEATURE_ABORT_WORD      (1ull << 17) /* a running kernel can be asked to stop */
#define BHI_FEATURE_WHOLE_LOOPS     (1ull << 18) /* no loop is cut short by the driver */
#define BHI_FEATURE_MEMORY_EXPORT   (1ull << 20) /* its memory can be shared between processes */
#define BHI_FEATURE_WHOLE_GRIDS     (1ull << 19) /* no dispatch of 2^32 workgroups is cut short */
#define BHI_FEATURE_SENTINEL        (1ull << 21) /* another process can set abort words */

#endif
