/* Priming: a kernel's first dispatch runs with the abort word set. A driver that compiles after the
 * submission (lavapipe) does it then, and nothing of the kernel runs. So compiling and running have
 * separate deadlines. */
#ifndef BHI_WORKER_VULKAN_PRIME_H
#define BHI_WORKER_VULKAN_PRIME_H

#include "worker/vulkan/backend.h"

/* |pipeline| belongs to |kernel|, which is READY and guarded. Returns false and *error on failure;
 * the device may be lost then (backend->lost). */
bool bhi_vk_prime(struct bhi_backend *backend, const struct bhi_vk_kernel *kernel,
                  VkPipeline pipeline, struct bhi_error *error);

#endif
