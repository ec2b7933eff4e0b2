/* In bulkhead-worker-faulty each Vulkan call that returns a VkResult can be made to fail (points vk
 * and vk_poll, faults.h). */
#ifndef BHI_WORKER_VULKAN_BREAKABLE_H
#define BHI_WORKER_VULKAN_BREAKABLE_H

#include "worker/vulkan/api.h"

#if BHI_FAULTS
/* Puts a wrapper before each loaded function that has none yet. */
void bhi_vk_breakable(struct bhi_vk_api *api);
#define BHI_VK_BREAKABLE(api) bhi_vk_breakable(api)
#else
#define BHI_VK_BREAKABLE(api) ((void)0)
#endif

#endif
