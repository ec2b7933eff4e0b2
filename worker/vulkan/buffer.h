/* Buffers: shared mappings imported into the device without a copy (VK_EXT_external_memory_host).
 */
#ifndef BHI_WORKER_VULKAN_BUFFER_H
#define BHI_WORKER_VULKAN_BUFFER_H

#include "worker/vulkan/device.h"

struct bhi_vk_buffer {
    uint64_t id;
    uint64_t size; /* as announced */
    size_t mapped; /* bytes mapped at |pointer|, whole pages */
    void *pointer; /* what is imported: the memfd, or a copy of what is at |source| */
    bool writable; /* as announced, as is: */
    bool constant; /* its content stays as it is */
    bool imported; /* device memory that another worker made */
    void *source;  /* NULL, or the read-only mapping that the device would not import (stage.h) */
    VkDeviceMemory memory;
    VkBuffer buffer;        /* VK_NULL_HANDLE: size 0 and the device takes null descriptors */
    struct bhi_error error; /* status BH_OK, or why it cannot be used */
    /* Hazard tracking (hazards.c): what commands since the last barrier did with it. */
    uint64_t epoch;
    uint32_t first_range;
    uint64_t stamp; /* the newest recording that lists it */
    /* Staging (stage.c): what has to be copied before the run that is being prepared, and what
     * of a constant one has been. */
    uint64_t stage_begin, stage_end;
    uint64_t staged_begin, staged_end;
    struct bhi_vk_buffer *next_staged;
};

/* Maps |fd| (verified, taken over) and imports it. Always returns a buffer, perhaps one with a
 * error; NULL only when out of memory (|fd| is closed). */
struct bhi_vk_buffer *bhi_vk_buffer_attach(struct bhi_vk_device *device, uint64_t id, int fd,
                                           uint64_t size, enum bhi_attach access);
/* Imports |mapped| bytes at |pointer|, which stay the caller's. */
bool bhi_vk_buffer_import(struct bhi_vk_device *device, struct bhi_vk_buffer *buffer);
void bhi_vk_buffer_destroy(struct bhi_vk_device *device, struct bhi_vk_buffer *buffer);
/* Frees the Vulkan objects, not the mapping. */
void bhi_vk_buffer_release(struct bhi_vk_device *device, struct bhi_vk_buffer *buffer);

#endif
