/* What a device's fresh memory holds in tests. Lavapipe's is zero by chance; a GPU's has what somebody
 * else left there. */
#ifndef BHT_NOISE_H
#define BHT_NOISE_H

#include <stdbool.h>
#include <string.h>
#include <vulkan/vulkan.h>

static inline void bht_noise(void *bytes, size_t size) {
    memset(bytes, 0xb5, size);
}

/* Is it fresh memory, and not somebody's? (What is imported comes first.) */
static inline bool bht_is_fresh(const VkMemoryAllocateInfo *info) {
    const VkBaseInStructure *next = info->pNext;
    return !next || (next->sType != VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR &&
                     next->sType != VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
}

#endif
