/* Recording a dispatch.
 *
 * A driver that runs kernels on processors begins each workgroup of a grid, also those that do
 * nothing but find the abort word set: four million take more than a grace time. So there a large
 * grid of a guarded kernel becomes many dispatches in a row, and what is left of them when the word
 * is set is not begun at all (VK_EXT_conditional_rendering, with the word as its condition). The
 * kernel sees the ids of the whole grid. The driver would tell it the size of a part: a kernel that
 * reads how many workgroups there are reads it from the guard's words (grid.c), which hold the
 * whole for as long as its parts run. */
#ifndef BHI_WORKER_VULKAN_DISPATCH_H
#define BHI_WORKER_VULKAN_DISPATCH_H

#include "worker/vulkan/backend.h"

/* Workgroups of a part; beginning and leaving that many takes two or three milliseconds. */
#define BHI_DISPATCH_PART 16384u
/* And not more parts than about this, so that a recording stays small. */
#define BHI_DISPATCH_PARTS 16384u

/* How much of each axis a part of |groups| has. Returns whether that is less than all. */
bool bhi_vk_dispatch_part(const uint32_t groups[3], uint32_t out[3]);
/* Is a grid of |kernel|, which is REFLECTED at least, dispatched in parts? */
bool bhi_vk_dispatch_splits(const struct bhi_vk_kernel *kernel, const uint32_t groups[3]);
/* Pipeline, sets and push constants are bound; |slot| is the record's abort word. */
void bhi_vk_dispatch(const struct bhi_backend *b, VkCommandBuffer commands,
                     const struct bhi_vk_kernel *kernel, const uint32_t groups[3], uint32_t slot);

#endif
