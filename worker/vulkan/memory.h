/* Which of a device's memory the abort words (abort.h) can be in. */
#ifndef BHI_WORKER_VULKAN_MEMORY_H
#define BHI_WORKER_VULKAN_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

/* The best type, out of |allowed|; -1: none. Imported or plain host memory is no use on a GPU: what
 * is written there reaches no kernel that runs. */
int bhi_vk_memory_for_words(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                            bool is_cpu, bool *out_reaches);
/* Is there memory in which a running kernel would see a word that the host writes? */
bool bhi_vk_memory_reaches(const VkPhysicalDeviceMemoryProperties *memory, bool is_cpu);

#endif
