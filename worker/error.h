/* Filling in a struct bhi_error. */
#ifndef BHI_WORKER_ERROR_H
#define BHI_WORKER_ERROR_H

#include "worker/backend.h"

/* Both overwrite *error, with no command and executed NO; callers refine those. */
void bhi_error_set(struct bhi_error *error, bh_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* |what| is the call; status follows from |result|: OUT_OF_*, DEVICE_LOST, else VULKAN. */
void bhi_error_vk(struct bhi_error *error, VkResult result, const char *what);
const char *bhi_vk_result_name(VkResult result);

#endif
