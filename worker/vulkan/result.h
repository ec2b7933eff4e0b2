/* Turns a VkResult into an error of the worker. */
#ifndef BHI_WORKER_VULKAN_RESULT_H
#define BHI_WORKER_VULKAN_RESULT_H

#include "worker/backend.h"
#include "worker/vulkan/api.h"

/* Sets *error as bhi_error_set does. |what| names the call. The status follows from |result|:
 * OUT_OF_*, DEVICE_LOST, else VULKAN. */
void bhi_error_vk(struct bhi_error *error, VkResult result, const char *what);
const char *bhi_vk_result_name(VkResult result);

#endif
