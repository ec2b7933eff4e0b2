/* Buffers: shared mappings imported into the device without a copy (VK_EXT_external_memory_host).
 */
#ifndef BHI_WORKER_VULKAN_BUFFER_H
#define BHI_WORKER_VULKAN_BUFFER_H

#include "worker/vulkan/device.h"

struct bhi_vk_buffer {
    uint64_t id;
    uint64_t size; /* from the host's message */
    size_t mapped; /* bytes mapped at |pointer|, whole pages */
    void *pointer; /* what is imported: the mapping of the memfd, or a copy of |source| */
    bool writable; /* from the host's message, as is: */
    bool constant; /* the content never changes */
    bool imported; /* device memory that another worker made */
    void *source;  /* NULL, or the read-only mapping that the device cannot import (stage.h) */
    VkDeviceMemory memory;
    VkBuffer buffer;        /* VK_NULL_HANDLE: size 0, and the device has null descriptors */
    struct bhi_error error; /* status BH_OK, or why it cannot be used */
    /* For hazards.c: what commands since the last barrier did with the buffer. */
    uint64_t epoch;
    uint32_t first_range;
    uint64_t stamp; /* the newest recording that lists it */
    /* For stage.c: the range to copy before the next run, and the range of a constant buffer that
     * is copied already. */
    uint64_t stage_begin, stage_end;
    uint64_t staged_begin, staged_end;
    struct bhi_vk_buffer *next_staged;
};

/* Maps |fd| (which is verified and taken over) and imports it. Returns a buffer, possibly one with
 * an error; NULL only if out of memory (|fd| is closed then). */
struct bhi_vk_buffer *bhi_vk_buffer_attach(struct bhi_vk_device *device, uint64_t id, int fd,
                                           uint64_t size, enum bhi_attach access);
/* Imports |mapped| bytes at |pointer|. The caller keeps the mapping. */
bool bhi_vk_buffer_import(struct bhi_vk_device *device, struct bhi_vk_buffer *buffer);
/* Makes buffer->buffer, for memory that comes by |handle|. |call| names this in an error. */
bool bhi_vk_buffer_create(struct bhi_vk_device *device, struct bhi_vk_buffer *buffer,
                          VkExternalMemoryHandleTypeFlags handle, uint64_t size, const char *call);
void bhi_vk_buffer_destroy(struct bhi_vk_device *device, struct bhi_vk_buffer *buffer);
/* Frees the Vulkan objects, not the mapping. */
void bhi_vk_buffer_release(struct bhi_vk_device *device, struct bhi_vk_buffer *buffer);

#endif
