/* Device time of records: alone, merged, repeated, and where there is none. */
#include "rig.h"
#include "worker/vulkan/backend.h"

static void dispatch(bool timed) {
    rig_begin();
    rig.records[rig.record_count - 1]->flags = timed ? BHI_RECORD_TIMED : 0;
    rig_dispatch(1, 1, 1, 1, BINDINGS(BOTH(0, 1)), NULL, 0);
}

static uint32_t *runs;

static void set_up(void) {
    rig_open_usual();
    runs = rig_buffer(1, 4);
    rig_kernel(1, CODE(increment));
}

BHT_AT_START(bht_around(set_up, NULL))

static void expect_time(size_t record) {
    const struct bhi_result *result = &rig.results[record];
    BHT_GE(result->device_ns, 1);
    BHT_LE(result->device_ns, result->ended_ns - result->started_ns);
}

/* One that is asked for its time is not another's recording, though its commands are the same. */
TEST(only_what_is_asked_for) {
    for (uint32_t i = 0; i < 6; i++) {
        dispatch(i % 2);
        rig_run_ok();
        BHT_EQ(*runs, i + 1);
        if (i % 2) {
            expect_time(0);
        } else {
            BHT_EQ(rig.results[0].device_ns, 0);
        }
    }
}

TEST(each_of_those_that_are_merged) {
    dispatch(false); /* compiled */
    rig_run_ok();
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 80; i++) {
            dispatch(i % 3 != round);
        }
        rig_run_ok();
        BHT_EQ(*runs, 1 + 80 * (round + 1));
        uint64_t sum = 0;
        for (uint32_t i = 0; i < 64; i++) {
            sum += rig.results[i].device_ns;
        }
        /* They run one after the other. */
        BHT_LE(sum, rig.results[0].ended_ns - rig.results[0].started_ns);
        for (uint32_t i = 0; i < 80; i++) {
            if (i % 3 != round) {
                expect_time(i);
            } else {
                BHT_EQ(rig.results[i].device_ns, 0);
            }
        }
    }
}

TEST(nothing_to_run_takes_no_time) {
    rig_begin();
    rig.records[0]->flags = BHI_RECORD_TIMED;
    rig_prepare(1);
    rig_run_ok();
    BHT_EQ(rig.results[0].device_ns, 0);
    rig_begin();
    rig.records[0]->flags = BHI_RECORD_TIMED;
    rig_run_ok();
    BHT_EQ(rig.results[0].device_ns, 0);
}

TEST(a_queue_without_timestamps) {
    struct bhi_vk_backend *b = bhi_vk(rig.backend);
    struct bhi_error error;
    bhi_vk_timing_fini(&b->device, &b->timing);
    const uint32_t bits = b->device.timestamp_bits;
    b->device.timestamp_bits = 0;
    BHT_TRUE(bhi_vk_timing_init(&b->device, &b->timing, &error));
    BHT_TRUE(b->timing.pool == VK_NULL_HANDLE);
    b->device.timestamp_bits = bits;
    b->device.enabled.v12.hostQueryReset = VK_FALSE;
    BHT_TRUE(bhi_vk_timing_init(&b->device, &b->timing, &error));
    BHT_TRUE(b->timing.pool == VK_NULL_HANDLE);
    dispatch(true);
    rig_run_ok();
    BHT_EQ(*runs, 1);
    BHT_EQ(rig.results[0].device_ns, 0);
}

static VkResult answer;

static VKAPI_ATTR VkResult VKAPI_CALL no_results(VkDevice device, VkQueryPool pool, uint32_t first,
                                                 uint32_t count, size_t size, void *data,
                                                 VkDeviceSize stride, VkQueryResultFlags flags) {
    (void)device, (void)pool, (void)first, (void)count, (void)stride, (void)flags;
    memset(data, 0xA5, size);
    return answer;
}

/* The record has run all the same. */
TEST(a_driver_that_has_lost_them) {
    static const VkResult ANSWERS[] = {VK_NOT_READY, VK_ERROR_OUT_OF_HOST_MEMORY,
                                       VK_ERROR_DEVICE_LOST};
    bhi_vk(rig.backend)->device.api.GetQueryPoolResults = no_results;
    for (uint32_t i = 0; i < BHT_COUNT(ANSWERS); i++) {
        answer = ANSWERS[i];
        dispatch(true);
        rig_run_ok();
        BHT_EQ(*runs, i + 1);
        BHT_EQ(rig.results[0].device_ns, 0);
    }
}
