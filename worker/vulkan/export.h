/* Buffers in the device's own memory, shared between workers as opaque descriptors
 * (VK_KHR_external_memory_fd): one worker makes and clears the memory, the supervisor keeps the
 * descriptor, others import it. The memory outlives its maker. */
#ifndef BHI_WORKER_VULKAN_EXPORT_H
#define BHI_WORKER_VULKAN_EXPORT_H

#include "worker/vulkan/buffer.h"

/* What is needed for a single use of the device's queue. */
struct bhi_vk_once {
    VkCommandBuffer commands; /* not in use elsewhere */
    VkFence fence;
    bool *lost; /* set if the device is lost */
};

/* Makes |size| zero bytes (not 0) and *out_fd. If it fails, *out_fd is -1 and the buffer has the
 * error. Returns NULL if there is no memory for the buffer object. */
struct bhi_vk_buffer *bhi_vk_export_make(struct bhi_vk_device *device,
                                         const struct bhi_vk_once *once, uint64_t id, uint64_t size,
                                         int *out_fd);
/* Overwrites such a buffer with zeros. If it fails, the buffer has the error. */
bool bhi_vk_export_clear(struct bhi_vk_device *device, const struct bhi_vk_once *once,
                         struct bhi_vk_buffer *buffer);
/* Imports the memory of such a descriptor, and takes |fd| over. Returns NULL as above. */
struct bhi_vk_buffer *bhi_vk_export_import(struct bhi_vk_device *device, uint64_t id, int fd,
                                           uint64_t size);

#endif
