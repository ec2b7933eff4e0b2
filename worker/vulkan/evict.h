/* Evicts a pipeline, with the recordings and bind groups that use it. */
#ifndef BHI_WORKER_VULKAN_EVICT_H
#define BHI_WORKER_VULKAN_EVICT_H

#include "worker/vulkan/recordings.h"

/* Removes all groups and recordings that were made for |kernel|'s pipeline or layouts. */
void bhi_vk_forget_kernel(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                          struct bhi_vk_groups *groups, const struct bhi_vk_kernel *kernel);
/* Evicts pipelines beyond the limit that |run| does not use, with the recordings and groups that
 * use them. */
void bhi_vk_evict_pipelines(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                            struct bhi_vk_recordings *recordings, struct bhi_vk_groups *groups,
                            uint64_t run);

#endif
