/* Binds buffers to a dispatch: checks them against what the kernel declares. */
#ifndef BHI_WORKER_VULKAN_BIND_H
#define BHI_WORKER_VULKAN_BIND_H

#include "worker/vulkan/backend.h"

/* Lists each object once: |stamp| is the object's own note of the recording that lists it. */
bool bhi_recorder_depend(struct bhi_recorder *recorder, struct bhi_pointers *list, void *object,
                         uint64_t *stamp);
/* Checks a dispatch against its kernel and the device's limits, and puts the buffer
 * ranges in the order of the kernel's reflection. */
bool bhi_bind_check(struct bhi_recorder *recorder, const struct bhi_vk_kernel *kernel,
                    const struct bhi_cmd_dispatch *dispatch,
                    struct bhi_vk_buffer *buffers[BHI_MAX_BINDINGS],
                    struct bhi_group_range ranges[BHI_MAX_BINDINGS]);
/* The attached buffer |id|, without an error, and writable where that is needed; NULL and
 * recorder->error otherwise. */
struct bhi_vk_buffer *bhi_recorder_buffer(struct bhi_recorder *recorder, uint64_t id, bool writes);
/* Binds what a dispatch of |kernel| needs besides its pipeline. */
void bhi_vk_bind_group(const struct bhi_backend *backend, VkCommandBuffer commands,
                       const struct bhi_vk_kernel *kernel, const struct bhi_vk_group *group);
void bhi_vk_bind_abort(const struct bhi_backend *backend, VkCommandBuffer commands,
                       const struct bhi_vk_kernel *kernel, const struct bhi_vk_group *group,
                       uint32_t slot);

#endif
