/* Which of a device's memory the abort words (abort.h) can be in, and which queue sets those that
 * no processor can. */
#ifndef BHI_WORKER_VULKAN_MEMORY_H
#define BHI_WORKER_VULKAN_MEMORY_H

#include "worker/vulkan/api.h"
#include <stdint.h>

/* What words that another process can reach are. */
#define BHI_WORDS_USAGE  (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define BHI_WORDS_HANDLE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

/* The best type, out of |allowed|; -1: none. Imported or plain host memory is no use on a GPU: what
 * is written there reaches no kernel that runs. */
int bhi_vk_memory_for_words(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed,
                            bool is_cpu, bool *out_reaches);
/* Words that another process can reach (transfer.h): the first type on the device; -1: none. */
int bhi_vk_memory_for_export(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed);
/* Is there memory in which a running kernel would see a word that the host writes? */
bool bhi_vk_memory_reaches(const VkPhysicalDeviceMemoryProperties *memory, bool is_cpu);
/* A family that can transfer and neither draw nor compute, of a device whose memory can be shared:
 * |has_memory_fd|. UINT32_MAX: none, or it cuts loops short (not |whole_loops|), which the guard
 * writes down next to the words, for the host to read. */
uint32_t bhi_vk_transfer_family(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                                bool has_memory_fd, bool whole_loops);

#endif
