/* Recording a dispatch.
 *
 * A driver on a processor starts each workgroup of a grid, even if the abort word is set and the
 * kernel returns at once: four million workgroups take longer than the grace time. So on such a
 * driver a large grid of a guarded kernel becomes a series of dispatches. When the word is set, the
 * remaining ones are not started (VK_EXT_conditional_rendering, with the word as its condition).
 * The kernel sees the ids of the whole grid. Its built-in number of workgroups would be that of a
 * part, so a kernel that reads it reads the guard's words (grid.c), which hold the number of the
 * whole grid while the parts run. */
#ifndef BHI_WORKER_VULKAN_DISPATCH_H
#define BHI_WORKER_VULKAN_DISPATCH_H

#include "worker/vulkan/backend.h"

/* Workgroups in a part. To start and end this many takes two or three milliseconds. */
#define BHI_DISPATCH_PART 16384u
/* About the highest number of parts, so that a recording stays small. */
#define BHI_DISPATCH_PARTS 16384u

/* Computes the size of a part of |groups| on each axis. Returns false if the part is the whole
 * grid. */
bool bhi_vk_dispatch_part(const uint32_t groups[3], uint32_t out[3]);
/* Is a grid of |kernel| dispatched in parts? The kernel must be REFLECTED or READY. */
bool bhi_vk_dispatch_splits(const struct bhi_vk_kernel *kernel, const uint32_t groups[3]);
/* Records the dispatch. Pipeline, sets and push constants must be bound. |slot| is that of the
 * record's abort word. */
void bhi_vk_dispatch(const struct bhi_vk_backend *b, VkCommandBuffer commands,
                     const struct bhi_vk_kernel *kernel, const uint32_t groups[3], uint32_t slot);

#endif
