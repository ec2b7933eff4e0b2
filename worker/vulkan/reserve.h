/* Drivers that keep their memory in an anonymous file.
 *
 * Mesa's llvmpipe (since 23) takes all memory that it allocates, also that of descriptor sets, from
 * one memfd, and extends the file as needed. Filter B forbids ftruncate. So the file gets its final
 * length while the worker starts, and is sealed at that length. Its pages are allocated when they
 * are first used, and count in the worker's memory cgroup. */
#ifndef BHI_WORKER_VULKAN_RESERVE_H
#define BHI_WORKER_VULKAN_RESERVE_H

#include "worker/backend.h"
#include "worker/vulkan/device.h"

/* Call it when the device exists, before filter B. Does nothing if the driver has no such file.
 * Returns false and *error if the file does not get its length. */
bool bhi_vk_reserve(struct bhi_vk_device *device, struct bhi_error *error);
/* SwiftShader maps its compiled code privately from a memfd that cannot be sealed, and extends the
 * file to the longest piece. Call this when it has compiled something, before filter B, which
 * answers ftruncate with an error: it makes the file long enough for all later code. */
bool bhi_vk_reserve_code(struct bhi_vk_device *device, struct bhi_error *error);

#endif
