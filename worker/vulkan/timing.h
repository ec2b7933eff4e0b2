/* Device time: how long the device is busy with a record. The device writes a timestamp before the
 * record's first command and one after the last, into the pair of queries of the record's slot
 * (abort.h). It does so only if the record asks for it (BHI_RECORD_TIMED): on lavapipe two
 * timestamps take longer than an empty dispatch. If the queue has no timestamps, or the host cannot
 * reset queries, nothing is written and each time is 0, which means unknown. */
#ifndef BHI_WORKER_VULKAN_TIMING_H
#define BHI_WORKER_VULKAN_TIMING_H

#include "worker/vulkan/device.h"

struct bhi_vk_timing {
    VkQueryPool pool; /* VK_NULL_HANDLE: times are unknown */
};

bool bhi_vk_timing_init(struct bhi_vk_device *device, struct bhi_vk_timing *timing,
                        struct bhi_error *error);
void bhi_vk_timing_fini(struct bhi_vk_device *device, struct bhi_vk_timing *timing);
/* Call these around a record's commands. The time begins when all earlier commands have ended. */
void bhi_vk_timing_begin(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         VkCommandBuffer commands, uint32_t slot);
void bhi_vk_timing_end(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                       VkCommandBuffer commands, uint32_t slot);
/* Call it before the submission. |slots| has a bit for each slot with a time. */
void bhi_vk_timing_reset(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         uint64_t slots);
/* Returns the time of |slot|. Call it after the device has finished, |host_ns| after the
 * submission. */
uint64_t bhi_vk_timing_read(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                            uint32_t slot, uint64_t host_ns);

#endif
