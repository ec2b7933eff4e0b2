/* Device time: how long the device is busy with a record. It writes a timestamp before the first
 * command of the record and one after the last, into the pair of queries that belongs to the
 * record's slot (abort.h). Only where the record asks for it (BHI_RECORD_TIMED): on lavapipe two
 * timestamps take longer than an empty dispatch. Where the queue has no timestamps, or the host
 * cannot reset queries, nothing is written and each time is 0: not known. */
#ifndef BHI_WORKER_VULKAN_TIMING_H
#define BHI_WORKER_VULKAN_TIMING_H

#include "worker/vulkan/device.h"

struct bhi_vk_timing {
    VkQueryPool pool; /* VK_NULL_HANDLE: times are not known */
};

bool bhi_vk_timing_init(struct bhi_vk_device *device, struct bhi_vk_timing *timing,
                        struct bhi_error *error);
void bhi_vk_timing_fini(struct bhi_vk_device *device, struct bhi_vk_timing *timing);
/* Around a record's commands. All that was recorded before has ended when its time begins. */
void bhi_vk_timing_begin(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         VkCommandBuffer commands, uint32_t slot);
void bhi_vk_timing_end(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                       VkCommandBuffer commands, uint32_t slot);
/* Before the submission: |slots| has a bit for each slot in it that has a time. */
void bhi_vk_timing_reset(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         uint64_t slots);
/* After the device has finished them, |host_ns| after the submission: the time of |slot|. */
uint64_t bhi_vk_timing_read(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                            uint32_t slot, uint64_t host_ns);

#endif
