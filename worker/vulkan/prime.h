/* Priming: a kernel's first dispatch, with the abort word set. Drivers that compile after the
 * submission (lavapipe) do so then, and nothing of the kernel runs: compiling and running have
 * deadlines of their own. */
#ifndef BHI_WORKER_VULKAN_PRIME_H
#define BHI_WORKER_VULKAN_PRIME_H

#include "worker/vulkan/backend.h"

/* |pipeline| is one of |kernel|, which is READY and guarded. On failure *error; the device may be
 * lost (backend->lost). */
bool bhi_vk_prime(struct bhi_backend *backend, const struct bhi_vk_kernel *kernel,
                  VkPipeline pipeline, struct bhi_error *error);

#endif
