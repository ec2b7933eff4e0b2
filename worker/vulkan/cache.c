#include "worker/vulkan/cache.h"

#include "base/futex.h"
#include "base/memfd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHARE 20u /* saving may take one part of this many of the time */

bool bhi_vk_cache_fits(const VkPhysicalDeviceProperties *properties, const void *data,
                       size_t size) {
    VkPipelineCacheHeaderVersionOne header;
    if (size < sizeof header) {
        return false;
    }
    memcpy(&header, data, sizeof header);
    return header.headerSize == sizeof header &&
           header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
           header.vendorID == properties->vendorID && header.deviceID == properties->deviceID &&
           memcmp(header.pipelineCacheUUID, properties->pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

/* Returns a copy, because nothing may change what the driver reads. */
static void *copy_initial(const struct bhi_vk_device *device, const struct bhi_vk_cache *cache,
                          size_t *out_size) {
    const uint64_t bytes = cache->area->bytes;
    *out_size = 0;
    if (bytes == 0 || bytes > cache->room) {
        return NULL;
    }
    void *copy = malloc(bytes);
    if (!copy) {
        return NULL;
    }
    memcpy(copy, (const char *)cache->area + BHI_CACHE_AREA_HEADER, bytes);
    VkPhysicalDeviceProperties properties;
    device->api.GetPhysicalDeviceProperties(device->physical, &properties);
    if (!bhi_vk_cache_fits(&properties, copy, bytes)) {
        free(copy);
        return NULL;
    }
    *out_size = bytes;
    return copy;
}

static void create(const struct bhi_vk_device *device, struct bhi_vk_cache *cache,
                   const void *initial, size_t size) {
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                            .initialDataSize = size,
                                            .pInitialData = initial};
    if (device->api.CreatePipelineCache(device->device, &info, NULL, &cache->cache) != VK_SUCCESS) {
        cache->cache = VK_NULL_HANDLE;
    }
}

void bhi_vk_cache_attach(const struct bhi_vk_device *device, struct bhi_vk_cache *cache, int fd,
                         uint64_t room) {
    void *area = MAP_FAILED;
    if (!cache->area && bhi_memfd_verify(fd, BHI_CACHE_AREA_HEADER + room, 0) == 0) {
        area = mmap(NULL, BHI_CACHE_AREA_HEADER + room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (area == MAP_FAILED) {
        return;
    }
    *cache = (struct bhi_vk_cache){.area = area, .room = room};
    size_t size;
    void *initial = copy_initial(device, cache, &size);
    create(device, cache, initial, size);
    if (cache->cache == VK_NULL_HANDLE && size > 0) {
        create(device, cache, NULL, 0);
    }
    free(initial);
}

void bhi_vk_cache_save(const struct bhi_vk_device *device, struct bhi_vk_cache *cache, bool idle) {
    if (!cache->changed || cache->cache == VK_NULL_HANDLE) {
        return;
    }
    const uint64_t began = bhi_now_ns();
    if (!idle && began - cache->saved_ns < SHARE * cache->cost_ns) {
        return;
    }
    cache->changed = false;
    size_t size = 0;
    if (device->api.GetPipelineCacheData(device->device, cache->cache, &size, NULL) != VK_SUCCESS ||
        size == 0 || size > cache->room) {
        return; /* the last saved cache stays */
    }
    /* If the worker dies in between, the stamp stays odd, and the content is ignored. */
    struct bhi_cache_area *area = cache->area;
    const uint64_t stamp = atomic_load_explicit(&area->stamp, memory_order_relaxed);
    atomic_store_explicit(&area->stamp, stamp | 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    const VkResult result = device->api.GetPipelineCacheData(device->device, cache->cache, &size,
                                                             (char *)area + BHI_CACHE_AREA_HEADER);
    area->bytes = size;
    if (result == VK_SUCCESS) {
        atomic_store_explicit(&area->stamp, (stamp | 1) + 1, memory_order_seq_cst);
    }
    cache->saved_ns = bhi_now_ns();
    cache->cost_ns = cache->saved_ns - began;
}

void bhi_vk_cache_fini(const struct bhi_vk_device *device, struct bhi_vk_cache *cache) {
    device->api.DestroyPipelineCache(device->device, cache->cache, NULL);
    if (cache->area) {
        munmap(cache->area, BHI_CACHE_AREA_HEADER + cache->room);
    }
    *cache = (struct bhi_vk_cache){0};
}
