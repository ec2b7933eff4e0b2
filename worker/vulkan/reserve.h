/* Drivers that keep their memory in an anonymous file.
 *
 * Mesa's llvmpipe (since 23) takes all memory that it allocates itself, that of every descriptor
 * set too, from one memfd, and makes the file longer as it needs more. Filter B knows no ftruncate.
 * So the file gets its final length while the worker starts, and is sealed at that length. Its
 * pages are made when they are touched, and are charged to the worker's memory cgroup. */
#ifndef BHI_WORKER_VULKAN_RESERVE_H
#define BHI_WORKER_VULKAN_RESERVE_H

#include "worker/backend.h"
#include "worker/vulkan/device.h"

/* To be called when the device is there, before filter B. Does nothing where the driver has no such
 * file. False and *error where it has one that does not get its length. */
bool bhi_vk_reserve(struct bhi_vk_device *device, struct bhi_error *error);
/* SwiftShader maps what it compiles privately from a memfd that it cannot seal, and makes the file
 * as long as the longest piece. To be called when it has compiled something, before filter B, which
 * answers ftruncate: then the file has a length that is enough for all. */
bool bhi_vk_reserve_code(struct bhi_vk_device *device, struct bhi_error *error);

#endif
