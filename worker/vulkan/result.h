/* Turns a VkResult into an error of the worker. */
#ifndef BHI_WORKER_VULKAN_RESULT_H
#define BHI_WORKER_VULKAN_RESULT_H

#include "worker/backend.h"

/* |what| is the call; status follows from |result|: OUT_OF_*, DEVICE_LOST, else VULKAN. Overwrites
 * *error as bhi_error_set does. */
void bhi_error_vk(struct bhi_error *error, VkResult result, const char *what);
const char *bhi_vk_result_name(VkResult result);

#endif
