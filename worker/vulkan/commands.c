#include "worker/vulkan/commands.h"

VkResult bhi_vk_pool_create(const struct bhi_vk_device *d, uint32_t family, VkCommandPool *out) {
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = family};
    const VkResult result = d->api.CreateCommandPool(d->device, &info, NULL, out);
    *out = result == VK_SUCCESS ? *out : VK_NULL_HANDLE;
    return result;
}

VkResult bhi_vk_commands_create(const struct bhi_vk_device *d, VkCommandPool pool,
                                VkCommandBuffer *out) {
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    const VkResult result = d->api.AllocateCommandBuffers(d->device, &info, out);
    *out = result == VK_SUCCESS ? *out : VK_NULL_HANDLE;
    return result;
}

VkResult bhi_vk_commands_begin(const struct bhi_vk_device *d, VkCommandBuffer commands, bool once) {
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : 0};
    return d->api.BeginCommandBuffer(commands, &info);
}

void bhi_vk_barrier(const struct bhi_vk_device *d, VkCommandBuffer commands,
                    VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                    VkAccessFlags used) {
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = written, .dstAccessMask = used};
    d->api.CmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

VkResult bhi_vk_fence_create(const struct bhi_vk_device *d, VkFence *out) {
    const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkResult result = d->api.CreateFence(d->device, &info, NULL, out);
    *out = result == VK_SUCCESS ? *out : VK_NULL_HANDLE;
    return result;
}

VkResult bhi_vk_submit(const struct bhi_vk_device *d, VkQueue queue, VkCommandBuffer commands,
                       VkFence fence) {
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    return d->api.QueueSubmit(queue, 1, &info, fence);
}

VkResult bhi_vk_finish(const struct bhi_vk_device *d, VkFence fence) {
    VkResult result;
    do {
        result = d->api.WaitForFences(d->device, 1, &fence, VK_TRUE, UINT64_MAX);
    } while (result == VK_TIMEOUT);
    return result == VK_SUCCESS ? d->api.ResetFences(d->device, 1, &fence) : result;
}
