/* In which memory of a device the abort words (abort.h) can be, and which queue sets words that no
 * processor can write. */
#ifndef BHI_WORKER_VULKAN_MEMORY_H
#define BHI_WORKER_VULKAN_MEMORY_H

#include "worker/vulkan/api.h"
#include <stdint.h>

/* Usage and handle of words that another process can reach. */
#define BHI_WORDS_USAGE  (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define BHI_WORDS_HANDLE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

/* Returns the best type from |allowed|, or -1. On a GPU imported or plain host memory is useless: a
 * running kernel does not see what is written there. */
int bhi_vk_memory_for_words(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                            bool is_cpu, bool *out_reaches);
/* Returns a type on the device for words that another process can reach (transfer.h), or -1. */
int bhi_vk_memory_for_export(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed);
/* Is there memory in which a running kernel sees a word that the host writes? */
bool bhi_vk_memory_reaches(const VkPhysicalDeviceMemoryProperties *memory, bool is_cpu);
/* Returns a queue family that can transfer, but neither draw nor compute, if the device can share
 * memory (|has_memory_fd|). Else UINT32_MAX. Also UINT32_MAX if the driver cuts loops short (not
 * |whole_loops|): then the host must be able to read the flags beside the words. */
uint32_t bhi_vk_transfer_family(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                                bool has_memory_fd, bool whole_loops);

#endif
