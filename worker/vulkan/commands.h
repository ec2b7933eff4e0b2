/* Command buffers, barriers and fences. Where a call makes something, a failure leaves
 * VK_NULL_HANDLE. */
#ifndef BHI_WORKER_VULKAN_COMMANDS_H
#define BHI_WORKER_VULKAN_COMMANDS_H

#include "worker/vulkan/device.h"

/* Its command buffers can be recorded again. */
VkResult bhi_vk_pool_create(const struct bhi_vk_device *device, uint32_t family,
                            VkCommandPool *out);
VkResult bhi_vk_commands_create(const struct bhi_vk_device *device, VkCommandPool pool,
                                VkCommandBuffer *out);
/* |once|: what is recorded now is submitted once. */
VkResult bhi_vk_commands_begin(const struct bhi_vk_device *device, VkCommandBuffer commands,
                               bool once);
/* What the stages |from| have |written| is there for what the stages |to| do with it. */
void bhi_vk_barrier(const struct bhi_vk_device *device, VkCommandBuffer commands,
                    VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                    VkAccessFlags used);
VkResult bhi_vk_fence_create(const struct bhi_vk_device *device, VkFence *out);
VkResult bhi_vk_submit(const struct bhi_vk_device *device, VkQueue queue, VkCommandBuffer commands,
                       VkFence fence);
/* Waits for the fence of a submission, and resets it. After a failure the device may still run what
 * was submitted. */
VkResult bhi_vk_finish(const struct bhi_vk_device *device, VkFence fence);

#endif
