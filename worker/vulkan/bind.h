/* Checks the buffers of a dispatch against what the kernel declares, and binds them. */
#ifndef BHI_WORKER_VULKAN_BIND_H
#define BHI_WORKER_VULKAN_BIND_H

#include "worker/vulkan/backend.h"

/* Adds |object| to |list|, once for each recording: |stamp| is where the object notes the
 * recording. */
bool bhi_recorder_depend(struct bhi_recorder *recorder, struct bhi_pointers *list, void *object,
                         uint64_t *stamp);
/* Checks a dispatch against its kernel and the device's limits, and sorts the buffer ranges into
 * the order of the kernel's reflection. */
bool bhi_bind_check(struct bhi_recorder *recorder, const struct bhi_vk_kernel *kernel,
                    const struct bhi_cmd_dispatch *dispatch,
                    struct bhi_vk_buffer *buffers[BHI_MAX_BINDINGS],
                    struct bhi_group_range ranges[BHI_MAX_BINDINGS]);
/* Returns the attached buffer |id|. Returns NULL and sets recorder->error if there is none, if it
 * has an error, or if it must be writable and is not. */
struct bhi_vk_buffer *bhi_recorder_buffer(struct bhi_recorder *recorder, uint64_t id, bool writes);
/* Binds the descriptor sets that a dispatch of |kernel| needs. */
void bhi_vk_bind_group(const struct bhi_vk_backend *backend, VkCommandBuffer commands,
                       const struct bhi_vk_kernel *kernel, const struct bhi_vk_group *group);
void bhi_vk_bind_abort(const struct bhi_vk_backend *backend, VkCommandBuffer commands,
                       const struct bhi_vk_kernel *kernel, const struct bhi_vk_group *group,
                       uint32_t slot);

#endif
