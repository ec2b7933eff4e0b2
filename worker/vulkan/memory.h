/* In which memory of a device buffers and the abort words (abort.h) can be, and which queue sets
 * words that no processor can write. */
#ifndef BHI_WORKER_VULKAN_MEMORY_H
#define BHI_WORKER_VULKAN_MEMORY_H

#include "worker/vulkan/api.h"
#include <stdint.h>

/* Usage and handle of words that another process can reach. */
#define BHI_WORDS_USAGE  (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define BHI_WORDS_HANDLE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

/* Memory that a processor maps without flushing it. */
#define BHI_HOST_MEMORY (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)

/* Returns the first type from |allowed| that is all that is |needed| and |wanted|, and nothing
 * |unwanted|; else the first that is all that is |needed|; else -1. */
int bhi_vk_memory_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                       VkMemoryPropertyFlags needed, VkMemoryPropertyFlags wanted,
                       VkMemoryPropertyFlags unwanted);
/* The same for abort words that the host writes. On a GPU imported or plain host memory is useless: a
 * running kernel does not see what is written there. */
int bhi_vk_memory_for_words(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                            bool is_cpu, bool *out_reaches);
/* Is there memory in which a running kernel sees a word that the host writes? */
bool bhi_vk_memory_reaches(const VkPhysicalDeviceMemoryProperties *memory, bool is_cpu);
/* Can buffers of |usage| be in memory that is exported to, and imported from, other processes? */
bool bhi_vk_memory_shared(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                          VkBufferUsageFlags usage);
/* Returns a queue family that can transfer, but neither draw nor compute, if the device can share
 * memory (|has_memory_fd|). Else UINT32_MAX. Also UINT32_MAX if the driver cuts loops short (not
 * |whole_loops|): then the host must be able to read the flags beside the words. */
uint32_t bhi_vk_transfer_family(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                                bool has_memory_fd, bool whole_loops);

#endif
