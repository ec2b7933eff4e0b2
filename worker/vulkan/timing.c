#include "worker/vulkan/timing.h"

#include "worker/vulkan/abort.h"
#include "worker/vulkan/result.h"
#include "worker/vulkan/ticks.h"

#define QUERIES (2 * BHI_ABORT_SLOTS)
_Static_assert(BHI_ABORT_SLOTS <= 64, "a bit for each slot");

bool bhi_vk_timing_init(struct bhi_vk_device *device, struct bhi_vk_timing *timing,
                        struct bhi_error *error) {
    timing->pool = VK_NULL_HANDLE;
    if (!device->timestamp_bits || !device->enabled.v12.hostQueryReset) {
        return true;
    }
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = QUERIES,
    };
    VkResult result = device->api.CreateQueryPool(device->device, &info, NULL, &timing->pool);
    if (result != VK_SUCCESS) {
        timing->pool = VK_NULL_HANDLE;
        bhi_error_vk(error, result, "vkCreateQueryPool");
    }
    return result == VK_SUCCESS;
}

void bhi_vk_timing_fini(struct bhi_vk_device *device, struct bhi_vk_timing *timing) {
    if (timing->pool != VK_NULL_HANDLE) {
        device->api.DestroyQueryPool(device->device, timing->pool, NULL);
        timing->pool = VK_NULL_HANDLE;
    }
}

void bhi_vk_timing_begin(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         VkCommandBuffer commands, uint32_t slot) {
    if (timing->pool != VK_NULL_HANDLE) {
        /* Also at the bottom of the pipe: the top may run before earlier commands have ended. */
        device->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timing->pool,
                                      2 * slot);
    }
}

void bhi_vk_timing_end(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                       VkCommandBuffer commands, uint32_t slot) {
    if (timing->pool != VK_NULL_HANDLE) {
        device->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timing->pool,
                                      2 * slot + 1);
    }
}

void bhi_vk_timing_reset(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         uint64_t slots) {
    for (uint32_t slot = 0; timing->pool != VK_NULL_HANDLE && slot < 64 && slots >> slot; slot++) {
        if (slots >> slot & 1) {
            device->api.ResetQueryPool(device->device, timing->pool, 2 * slot, 2);
        }
    }
}

uint64_t bhi_vk_timing_read(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                            uint32_t slot, uint64_t host_ns) {
    uint64_t ticks[2];
    /* An unavailable time is not waited for: the record's result is valid without it. */
    if (timing->pool == VK_NULL_HANDLE ||
        device->api.GetQueryPoolResults(device->device, timing->pool, 2 * slot, 2, sizeof ticks,
                                        ticks, sizeof *ticks,
                                        VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
        return 0;
    }
    return bhi_ticks_to_ns(ticks[0], ticks[1], device->timestamp_bits,
                           (double)device->limits.timestampPeriod, host_ns);
}
