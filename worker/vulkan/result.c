#include "worker/vulkan/result.h"

#include <bulkhead/bulkhead.h>

void bhi_error_vk(struct bhi_error *error, VkResult result, const char *what) {
    bh_status status = BH_VULKAN;
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY) {
        status = BH_OUT_OF_HOST_MEMORY;
    } else if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_TOO_MANY_OBJECTS) {
        status = BH_OUT_OF_DEVICE_MEMORY;
    } else if (result == VK_ERROR_DEVICE_LOST) {
        status = BH_DEVICE_LOST;
    }
    BHI_ERROR(error, BH_REASON_NONE, .status = status, .vk_result = result,
              .text = BHI_SAY("%s: %s", what, bhi_vk_result_name(result)));
}

const char *bhi_vk_result_name(VkResult result) {
    switch (result) {
#define NAME(code)                                                                                 \
    case code:                                                                                     \
        return #code;
        NAME(VK_SUCCESS)
        NAME(VK_NOT_READY)
        NAME(VK_TIMEOUT)
        NAME(VK_INCOMPLETE)
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
        NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        NAME(VK_ERROR_INITIALIZATION_FAILED)
        NAME(VK_ERROR_DEVICE_LOST)
        NAME(VK_ERROR_MEMORY_MAP_FAILED)
        NAME(VK_ERROR_LAYER_NOT_PRESENT)
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
        NAME(VK_ERROR_FEATURE_NOT_PRESENT)
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
        NAME(VK_ERROR_TOO_MANY_OBJECTS)
        NAME(VK_ERROR_FRAGMENTED_POOL)
        NAME(VK_ERROR_UNKNOWN)
        NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
        NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
        NAME(VK_ERROR_INVALID_SHADER_NV)
#undef NAME
    default:
        return "an unnamed VkResult";
    }
}
