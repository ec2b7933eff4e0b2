#include "worker/vulkan/timing.h"

#include "worker/vulkan/abort.h"
#include "worker/vulkan/result.h"

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
    device->api.DestroyQueryPool(device->device, timing->pool, NULL);
    timing->pool = VK_NULL_HANDLE;
}

void bhi_vk_timing_stamp(const struct bhi_vk_device *device, const struct bhi_vk_timing *timing,
                         VkCommandBuffer commands, uint32_t slot, bool end) {
    if (timing->pool != VK_NULL_HANDLE) {
        /* Also at the bottom of the pipe: the top may run before earlier commands have ended. */
        device->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timing->pool,
                                      2 * slot + end);
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

uint64_t bhi_ticks_to_ns(uint64_t begin, uint64_t end, uint32_t valid_bits, double period_ns,
                         uint64_t host_ns) {
    const bool has_clock = valid_bits > 0 && period_ns > 0; /* a NaN compares false */
    if (!has_clock || host_ns == 0) {
        return 0;
    }
    const uint64_t mask = valid_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << valid_bits) - 1;
    if ((double)host_ns >= (double)mask * period_ns) {
        return 0;
    }
    const double ns = (double)((end - begin) & mask) * period_ns;
    /* Checked before the conversion, which is undefined for a value that a uint64_t cannot hold. */
    if (ns > 2 * (double)host_ns) {
        return 0;
    }
    if (ns >= (double)host_ns) {
        return host_ns;
    }
    return ns < 1 ? 1 : (uint64_t)ns;
}
