#include "worker/vulkan/transfer.h"

#include "worker/vulkan/commands.h"
#include "worker/vulkan/memory.h"

#include <string.h>
#include <unistd.h>

#define PATIENCE_NS (2ull * 1000000000)

VkResult bhi_vk_transfer_init(struct bhi_vk_device *device, struct bhi_vk_transfer *t,
                              const char **out_call) {
    device->api.GetDeviceQueue(device->device, device->transfer_family, 0, &t->queue);
    *out_call = "vkCreateCommandPool (abort words)";
    VkResult result = bhi_vk_pool_create(device, device->transfer_family, &t->pool);
    if (result == VK_SUCCESS) {
        *out_call = "vkAllocateCommandBuffers (abort words)";
        result = bhi_vk_commands_create(device, t->pool, &t->commands);
    }
    if (result == VK_SUCCESS) {
        *out_call = "vkCreateFence (abort words)";
        result = bhi_vk_fence_create(device, &t->fence);
    }
    return result;
}

void bhi_vk_transfer_fini(struct bhi_vk_device *device, struct bhi_vk_transfer *t) {
    device->api.DestroyFence(device->device, t->fence, NULL);
    device->api.DestroyCommandPool(device->device, t->pool, NULL);
    memset(t, 0, sizeof *t);
}

static VkResult record(struct bhi_vk_device *device, VkCommandBuffer commands, VkBuffer buffer,
                       const struct bhi_vk_fill *fills, size_t count) {
    const struct bhi_vk_api *vk = &device->api;
    VkResult result = bhi_vk_commands_begin(device, commands, false);
    if (result != VK_SUCCESS) {
        return result;
    }
    for (size_t i = 0; i < count; i++) {
        vk->CmdFillBuffer(commands, buffer, fills[i].offset, fills[i].size, fills[i].value);
    }
    return vk->EndCommandBuffer(commands);
}

VkResult bhi_vk_transfer_record(struct bhi_vk_device *device, const struct bhi_vk_transfer *t,
                                VkBuffer buffer, const struct bhi_vk_fill *fills, size_t count,
                                VkCommandBuffer *out) {
    VkResult result = bhi_vk_commands_create(device, t->pool, out);
    if (result == VK_SUCCESS) {
        result = record(device, *out, buffer, fills, count);
    }
    if (result != VK_SUCCESS) {
        bhi_vk_transfer_discard(device, t, out);
    }
    return result;
}

void bhi_vk_transfer_discard(struct bhi_vk_device *device, const struct bhi_vk_transfer *t,
                             VkCommandBuffer *commands) {
    if (*commands != VK_NULL_HANDLE) {
        device->api.FreeCommandBuffers(device->device, t->pool, 1, commands);
    }
    *commands = VK_NULL_HANDLE;
}

VkResult bhi_vk_transfer_run(struct bhi_vk_device *device, struct bhi_vk_transfer *t,
                             VkCommandBuffer commands) {
    const struct bhi_vk_api *vk = &device->api;
    if (t->lost) {
        return VK_ERROR_DEVICE_LOST;
    }
    VkResult result = bhi_vk_submit(device, t->queue, commands, t->fence);
    if (result != VK_SUCCESS) {
        return result;
    }
    result = vk->WaitForFences(device->device, 1, &t->fence, VK_TRUE, PATIENCE_NS);
    if (result == VK_SUCCESS) {
        result = vk->ResetFences(device->device, 1, &t->fence);
    }
    t->lost = result != VK_SUCCESS; /* the device may still use the command buffer */
    return t->lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

VkResult bhi_vk_transfer_fill(struct bhi_vk_device *device, struct bhi_vk_transfer *t,
                              VkBuffer buffer, const struct bhi_vk_fill *fills, size_t count) {
    if (t->lost) {
        return VK_ERROR_DEVICE_LOST;
    }
    const VkResult result = record(device, t->commands, buffer, fills, count);
    return result == VK_SUCCESS ? bhi_vk_transfer_run(device, t, t->commands) : result;
}

static void close_given(int fd) {
    if (fd >= 0) {
        close(fd);
    }
}

VkResult bhi_vk_words_create(struct bhi_vk_device *device, struct bhi_vk_words *words,
                             VkDeviceSize size, VkBufferUsageFlags usage, int fd,
                             const char **out_call) {
    const struct bhi_vk_api *vk = &device->api;
    const uint32_t families[2] = {device->queue_family, device->transfer_family};
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = BHI_WORDS_HANDLE};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = &external,
                                     .size = size,
                                     .usage = BHI_WORDS_USAGE | usage,
                                     .sharingMode = fd >= 0 ? VK_SHARING_MODE_EXCLUSIVE
                                                            : VK_SHARING_MODE_CONCURRENT,
                                     .queueFamilyIndexCount = fd >= 0 ? 0 : 2,
                                     .pQueueFamilyIndices = families};
    memset(words, 0, sizeof *words);
    *out_call = "vkCreateBuffer (abort words)";
    VkResult result = vk->CreateBuffer(device->device, &info, NULL, &words->buffer);
    if (result != VK_SUCCESS) {
        words->buffer = VK_NULL_HANDLE;
        close_given(fd);
        return result;
    }
    VkMemoryRequirements needs;
    vk->GetBufferMemoryRequirements(device->device, words->buffer, &needs);
    const int type = bhi_vk_memory_type(&device->memory, needs.memoryTypeBits,
                                        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0, 0);
    const VkExportMemoryAllocateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = BHI_WORDS_HANDLE};
    const VkImportMemoryFdInfoKHR imported = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                              .handleType = BHI_WORDS_HANDLE,
                                              .fd = fd};
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .pNext = fd >= 0 ? (const void *)&imported : &exported,
                                           .allocationSize =
                                               fd >= 0 && needs.size <= size ? size : needs.size,
                                           .memoryTypeIndex = type < 0 ? 0 : (uint32_t)type};
    *out_call = "vkAllocateMemory (abort words)";
    result = type < 0 ? VK_ERROR_FORMAT_NOT_SUPPORTED
             : fd >= 0 && needs.size > size
                 ? VK_ERROR_INVALID_EXTERNAL_HANDLE
                 : vk->AllocateMemory(device->device, &allocate, NULL, &words->memory);
    if (result != VK_SUCCESS) {
        words->memory = VK_NULL_HANDLE;
        close_given(fd); /* the driver has not taken it over */
        bhi_vk_words_destroy(device, words);
        return result;
    }
    words->bytes = allocate.allocationSize;
    *out_call = "vkBindBufferMemory (abort words)";
    result = vk->BindBufferMemory(device->device, words->buffer, words->memory, 0);
    if (result != VK_SUCCESS) {
        bhi_vk_words_destroy(device, words);
    }
    return result;
}

void bhi_vk_words_destroy(struct bhi_vk_device *device, struct bhi_vk_words *words) {
    device->api.DestroyBuffer(device->device, words->buffer, NULL);
    device->api.FreeMemory(device->device, words->memory, NULL);
    memset(words, 0, sizeof *words);
}

int bhi_vk_words_export(struct bhi_vk_device *device, const struct bhi_vk_words *words) {
    const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                       .memory = words->memory,
                                       .handleType = BHI_WORDS_HANDLE};
    int fd = -1;
    if (!device->api.GetMemoryFdKHR ||
        device->api.GetMemoryFdKHR(device->device, &info, &fd) != VK_SUCCESS) {
        return -1;
    }
    return fd;
}
