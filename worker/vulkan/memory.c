#include "worker/vulkan/memory.h"

int bhi_vk_memory_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                       VkMemoryPropertyFlags needed, VkMemoryPropertyFlags wanted,
                       VkMemoryPropertyFlags unwanted) {
    int best = -1;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        if (!(allowed & (1u << i)) || (flags & needed) != needed) {
            continue;
        }
        if ((flags & wanted) == wanted && !(flags & unwanted)) {
            return (int)i;
        }
        best = best < 0 ? (int)i : best;
    }
    return best;
}

int bhi_vk_memory_for_words(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                            bool is_cpu, bool *out_reaches) {
    const VkMemoryPropertyFlags local = is_cpu ? 0 : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const int type = bhi_vk_memory_type(memory, allowed, BHI_HOST_MEMORY, local, 0);
    *out_reaches = type >= 0 && (memory->memoryTypes[type].propertyFlags & local) == local;
    return type;
}

bool bhi_vk_memory_reaches(const VkPhysicalDeviceMemoryProperties *memory, bool is_cpu) {
    bool reaches;
    (void)bhi_vk_memory_for_words(memory, UINT32_MAX, is_cpu, &reaches);
    return reaches;
}

bool bhi_vk_memory_shared(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                          VkBufferUsageFlags usage) {
    const VkExternalMemoryFeatureFlags both =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    const VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = usage,
        .handleType = BHI_WORDS_HANDLE};
    VkExternalBufferProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    api->GetPhysicalDeviceExternalBufferProperties(physical, &info, &properties);
    return (properties.externalMemoryProperties.externalMemoryFeatures & both) == both;
}

uint32_t bhi_vk_transfer_family(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                                bool has_memory_fd, bool whole_loops) {
    VkQueueFamilyProperties families[32];
    uint32_t count = 32;
    if (!has_memory_fd || !whole_loops || !bhi_vk_memory_shared(api, physical, BHI_WORDS_USAGE)) {
        return UINT32_MAX;
    }
    api->GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        const VkQueueFlags flags = families[i].queueFlags;
        if (families[i].queueCount > 0 && (flags & VK_QUEUE_TRANSFER_BIT) &&
            !(flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT))) {
            return i;
        }
    }
    return UINT32_MAX;
}
