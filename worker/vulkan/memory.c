#include "worker/vulkan/memory.h"

int bhi_vk_memory_for_words(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                            bool is_cpu, bool *out_reaches) {
    const VkMemoryPropertyFlags needed =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    int best = -1;
    *out_reaches = false;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        if (!(allowed & (1u << i)) || (flags & needed) != needed) {
            continue;
        }
        if (is_cpu || (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)) {
            *out_reaches = true;
            return (int)i;
        }
        best = best < 0 ? (int)i : best;
    }
    return best;
}

bool bhi_vk_memory_reaches(const VkPhysicalDeviceMemoryProperties *memory, bool is_cpu) {
    bool reaches;
    return bhi_vk_memory_for_words(memory, UINT32_MAX, is_cpu, &reaches) >= 0 && reaches;
}
