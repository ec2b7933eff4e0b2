/* Buffers in the device's own memory, shared between workers as opaque descriptors
 * (VK_KHR_external_memory_fd): one worker makes and clears the memory, the supervisor keeps the
 * descriptor, others import it. The memory outlives its maker. */
#ifndef BHI_WORKER_VULKAN_EXPORT_H
#define BHI_WORKER_VULKAN_EXPORT_H

#include "worker/vulkan/buffer.h"

/* What the device's queue is used with. */
struct bhi_vk_once {
    VkCommandBuffer commands; /* nothing else uses it meanwhile */
    VkFence fence;
    bool *lost; /* the device is */
};

/* Makes |size| zero bytes (not 0), and *out_fd; -1: it cannot, as the buffer's error says. NULL: no
 * memory for the buffer itself. */
struct bhi_vk_buffer *bhi_vk_export_make(struct bhi_vk_device *device,
                                         const struct bhi_vk_once *once, uint64_t id, uint64_t size,
                                         int *out_fd);
/* Imports what such a descriptor stands for; takes |fd| over. NULL: as above. */
struct bhi_vk_buffer *bhi_vk_export_import(struct bhi_vk_device *device, uint64_t id, int fd,
                                           uint64_t size);

#endif
