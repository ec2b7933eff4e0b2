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
/* Call it before and after a record's commands. The time begins when all earlier commands have ended. */
void bhi_vk_timing_stamp(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         VkCommandBuffer commands, uint32_t slot, bool end);
/* Call it before the submission. |slots| has a bit for each slot with a time. */
void bhi_vk_timing_reset(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         uint64_t slots);
/* Returns the time of |slot|. Call it after the device has finished, |host_ns| after the
 * submission. */
uint64_t bhi_vk_timing_read(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                            uint32_t slot, uint64_t host_ns);

/* Returns the time from |begin| to |end|, in nanoseconds. They are timestamps with |valid_bits|
 * valid bits, of a clock whose tick takes |period_ns|; the host measured |host_ns| around both. The
 * clock may wrap once in between. The result is at least 1, and at most |host_ns|, because the two
 * clocks may drift apart. Returns 0 if the time is unknown: there is no clock (no valid bits or no
 * period), it may have wrapped more than once in |host_ns|, or it shows more than twice
 * |host_ns|. */
uint64_t bhi_ticks_to_ns(uint64_t begin, uint64_t end, uint32_t valid_bits, double period_ns,
                         uint64_t host_ns);

#endif
