/* The driver's pipeline cache, and the memory through which it is handed over (cache_area.h). */
#ifndef BHI_WORKER_VULKAN_CACHE_H
#define BHI_WORKER_VULKAN_CACHE_H

#include "ipc/cache_area.h"
#include "worker/vulkan/device.h"

struct bhi_vk_cache {
    VkPipelineCache cache;       /* VK_NULL_HANDLE: none */
    struct bhi_cache_area *area; /* NULL: none */
    uint64_t room;
    bool changed;               /* something was compiled since the last save */
    uint64_t saved_ns, cost_ns; /* when it was saved last, and how long that took */
};

/* Takes |fd| over. */
void bhi_vk_cache_attach(const struct bhi_vk_device *device, struct bhi_vk_cache *cache, int fd,
                         uint64_t room);
void bhi_vk_cache_save(const struct bhi_vk_device *device, struct bhi_vk_cache *cache, bool idle);
void bhi_vk_cache_fini(const struct bhi_vk_device *device, struct bhi_vk_cache *cache);
/* May the driver see |data|? It must have a complete header (VkPipelineCacheHeaderVersionOne) of
 * exactly this device and driver. The driver checks what follows. */
bool bhi_vk_cache_fits(const VkPhysicalDeviceProperties *properties, const void *data, size_t size);

#endif
