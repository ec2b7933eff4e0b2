/* The in-process side, written as a careful host would: what can be recorded before is recorded
 * before, one fence, one command pool, descriptor sets that stay. */
#include "staged.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct vulkan_side {
    struct bench_device device;
    struct bench_pipeline pipelines[BENCH_KERNELS];
    VkDescriptorPool descriptor_pool;
    VkDescriptorSet sets[BENCH_KERNELS];
    VkCommandPool command_pool;            /* of what is recorded once */
    VkCommandPool scratch_pool;            /* of what is recorded each time: reset as a whole */
    VkCommandBuffer single[BENCH_KERNELS]; /* one dispatch, may be pending many times */
    VkCommandBuffer batch[BENCH_KERNELS];  /* batch_count dispatches */
    VkCommandBuffer scratch;
    VkFence fence;
    size_t batch_count;
    struct bench_memory counter;
    struct bench_memory x, y; /* of the warm saxpy */
    size_t saxpy_bytes;
    bool discrete; /* it has memory of its own, in which the warm saxpy is tried, too: */
    struct bench_memory near_x, near_y;
    struct bench_staged staged;
};

static void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
                    VkPipelineStageFlags to, VkAccessFlags accessed) {
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask = written,
                                    .dstAccessMask = accessed};
    vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void barrier_between(VkCommandBuffer commands) {
    barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

static void barrier_to_host(VkCommandBuffer commands) {
    barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

static void bind(struct vulkan_side *side, VkCommandBuffer commands, enum bench_kernel kernel) {
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipelines[kernel].pipeline);
    if (side->sets[kernel] != VK_NULL_HANDLE) {
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                side->pipelines[kernel].layout, 0, 1, &side->sets[kernel], 0, NULL);
    }
}

/* |count| dispatches; those that depend on each other with a barrier before each. */
static void record(struct vulkan_side *side, VkCommandBuffer commands, enum bench_kernel kernel,
                   size_t count, VkCommandBufferUsageFlags usage) {
    bench_commands_begin(commands, usage);
    bind(side, commands, kernel);
    for (size_t i = 0; i < count; i++) {
        if (kernel == BENCH_COUNT) {
            barrier_between(commands);
        }
        vkCmdDispatch(commands, 1, 1, 1);
    }
    if (kernel == BENCH_COUNT) {
        barrier_to_host(commands);
    }
    BENCH_VK(vkEndCommandBuffer(commands));
}

/* The counter after each dispatch is the one before, plus one. */
static void read_result(const struct vulkan_side *side, enum bench_kernel kernel,
                        uint32_t *counter) {
    if (kernel == BENCH_COUNT && *(volatile uint32_t *)side->counter.mapped != ++*counter) {
        bench_die("in-process, one dispatch: the counter is wrong, must be %u", *counter);
    }
}

static void make_round_trips(struct vulkan_side *side, enum bench_kernel kernel, uint64_t *samples,
                             size_t count, bool polls) {
    uint32_t counter = *(volatile uint32_t *)side->counter.mapped;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = bench_now_ns();
        bench_commands_submit(side->device.queue, side->single[kernel], side->fence);
        while (polls && vkGetFenceStatus(side->device.device, side->fence) == VK_NOT_READY) {
            sched_yield(); /* where processors are few, the driver's threads need this one */
        }
        bench_fence_finish(&side->device, side->fence);
        read_result(side, kernel, &counter);
        samples[i] = bench_now_ns() - start;
    }
}

static void round_trip(void *self, enum bench_kernel kernel, uint64_t *samples, size_t count) {
    make_round_trips(self, kernel, samples, count, false);
}

static void round_trip_polling(void *self, enum bench_kernel kernel, uint64_t *samples,
                               size_t count) {
    make_round_trips(self, kernel, samples, count, true);
}

static uint64_t commands(void *self, enum bench_kernel kernel, size_t count, bool recorded_before) {
    struct vulkan_side *side = self;
    if (recorded_before && count != side->batch_count) {
        bench_die("recorded for %zu commands, not %zu", side->batch_count, count);
    }
    uint64_t start = bench_now_ns();
    if (recorded_before) {
        bench_commands_submit(side->device.queue, side->batch[kernel], side->fence);
    } else {
        BENCH_VK(vkResetCommandPool(side->device.device, side->scratch_pool, 0));
        record(side, side->scratch, kernel, count, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
        bench_commands_submit(side->device.queue, side->scratch, side->fence);
    }
    bench_fence_finish(&side->device, side->fence);
    return bench_now_ns() - start;
}

static uint64_t submissions(void *self, enum bench_kernel kernel, size_t count) {
    struct vulkan_side *side = self;
    uint64_t start = bench_now_ns();
    for (size_t i = 0; i < count; i++) {
        bench_commands_submit(side->device.queue, side->single[kernel],
                              i + 1 == count ? side->fence : VK_NULL_HANDLE);
    }
    bench_fence_finish(&side->device, side->fence);
    return bench_now_ns() - start;
}

static uint32_t take_count(void *self) {
    struct vulkan_side *side = self;
    uint32_t count = *(volatile uint32_t *)side->counter.mapped;
    *(volatile uint32_t *)side->counter.mapped = 0;
    return count;
}

static void bind_arrays(struct vulkan_side *side, const struct bench_memory *x,
                        const struct bench_memory *y) {
    bench_set_write(&side->device, side->sets[BENCH_SAXPY], 0, x);
    bench_set_write(&side->device, side->sets[BENCH_SAXPY], 1, y);
}

static void begin_saxpy(struct vulkan_side *side) {
    BENCH_VK(vkResetCommandPool(side->device.device, side->scratch_pool, 0));
    bench_commands_begin(side->scratch, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
}

static void record_saxpy(struct vulkan_side *side, const struct bench_saxpy *work) {
    const struct bench_saxpy_push push = {.a = work->a, .count = (uint32_t)(work->count / 4)};
    bind(side, side->scratch, BENCH_SAXPY);
    vkCmdPushConstants(side->scratch, side->pipelines[BENCH_SAXPY].layout,
                       VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vkCmdDispatch(side->scratch, (push.count + BENCH_SAXPY_LOCAL - 1) / BENCH_SAXPY_LOCAL, 1, 1);
}

static void run_saxpy(struct vulkan_side *side, const struct bench_saxpy *work,
                      const struct bench_memory *x, const struct bench_memory *y) {
    size_t bytes = work->count * sizeof(float);
    memcpy(x->mapped, work->x, bytes);
    memcpy(y->mapped, work->y, bytes);
    begin_saxpy(side);
    record_saxpy(side, work);
    barrier_to_host(side->scratch);
    BENCH_VK(vkEndCommandBuffer(side->scratch));
    bench_commands_submit(side->device.queue, side->scratch, side->fence);
    bench_fence_finish(&side->device, side->fence);
    memcpy(work->out, y->mapped, bytes);
}

/* In the device's memory. Nothing is waited for but the staging memory. */
static uint64_t run_saxpy_near(struct vulkan_side *side, const struct bench_saxpy *work) {
    const size_t bytes = work->count * sizeof(float);
    bind_arrays(side, &side->near_x, &side->near_y);
    const uint64_t start = bench_now_ns();
    bench_staged_upload(&side->staged, &side->near_x, work->x, bytes);
    bench_staged_upload(&side->staged, &side->near_y, work->y, bytes);
    begin_saxpy(side);
    barrier(side->scratch, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    record_saxpy(side, work);
    barrier(side->scratch, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    BENCH_VK(vkEndCommandBuffer(side->scratch));
    bench_commands_submit(side->device.queue, side->scratch, VK_NULL_HANDLE);
    bench_staged_download(&side->staged, &side->near_y, work->out, bytes);
    return bench_now_ns() - start;
}

/* Which memory is faster depends on the device: the better of both counts. */
static uint64_t better_near(struct vulkan_side *side, const struct bench_saxpy *work,
                            uint64_t mapped) {
    if (!side->discrete) {
        return mapped;
    }
    bench_check_saxpy("in-process", work);
    memset(work->out, 0xff, work->count * sizeof(float)); /* this result the caller checks */
    const uint64_t near = run_saxpy_near(side, work);
    return near < mapped ? near : mapped;
}

static uint64_t saxpy(void *self, const struct bench_saxpy *work, bool cold) {
    struct vulkan_side *side = self;
    size_t bytes = work->count * sizeof(float);
    if (!cold && side->saxpy_bytes == 0) {
        bench_memory_make(&side->device, bytes, false, &side->x);
        bench_memory_make(&side->device, bytes, false, &side->y);
        side->saxpy_bytes = bytes;
        if (side->discrete) {
            bench_memory_make(&side->device, bytes, true, &side->near_x);
            bench_memory_make(&side->device, bytes, true, &side->near_y);
            bench_staged_open(&side->device, &side->staged);
        }
    }
    if (!cold) {
        bind_arrays(side, &side->x, &side->y);
    }
    uint64_t start = bench_now_ns();
    if (cold) {
        struct bench_memory x, y;
        bench_memory_make(&side->device, bytes, false, &x);
        bench_memory_make(&side->device, bytes, false, &y);
        bind_arrays(side, &x, &y);
        run_saxpy(side, work, &x, &y);
        bench_memory_free(&side->device, &x);
        bench_memory_free(&side->device, &y);
    } else {
        run_saxpy(side, work, &side->x, &side->y);
    }
    const uint64_t mapped = bench_now_ns() - start;
    return cold ? mapped : better_near(side, work, mapped);
}

static void destroy(void *self) {
    struct vulkan_side *side = self;
    VkDevice device = side->device.device;
    vkDeviceWaitIdle(device);
    for (size_t i = 0; i < BENCH_KERNELS; i++) {
        bench_pipeline_free(&side->device, &side->pipelines[i]);
    }
    if (side->saxpy_bytes > 0) {
        bench_memory_free(&side->device, &side->x);
        bench_memory_free(&side->device, &side->y);
    }
    if (side->saxpy_bytes > 0 && side->discrete) {
        bench_memory_free(&side->device, &side->near_x);
        bench_memory_free(&side->device, &side->near_y);
        bench_staged_close(&side->staged);
    }
    bench_memory_free(&side->device, &side->counter);
    vkDestroyFence(device, side->fence, NULL);
    vkDestroyDescriptorPool(device, side->descriptor_pool, NULL);
    vkDestroyCommandPool(device, side->command_pool, NULL);
    vkDestroyCommandPool(device, side->scratch_pool, NULL);
    bench_device_close(&side->device);
    free(side);
}

static void make_sets(struct vulkan_side *side) {
    const VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       .descriptorCount = 16};
    const VkDescriptorPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = BENCH_KERNELS,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    VkDevice device = side->device.device;
    BENCH_VK(vkCreateDescriptorPool(device, &pool_info, NULL, &side->descriptor_pool));
    for (size_t i = 0; i < BENCH_KERNELS; i++) {
        const VkDescriptorSetAllocateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .descriptorPool = side->descriptor_pool,
            .descriptorSetCount = 1,
            .pSetLayouts = &side->pipelines[i].set_layout,
        };
        if (i == BENCH_COUNT || i == BENCH_SAXPY) {
            BENCH_VK(vkAllocateDescriptorSets(device, &info, &side->sets[i]));
        }
    }
}

void bench_vulkan_side(const struct bench_options *options, struct bench_side *out,
                       struct bench_machine *machine) {
    static const uint32_t BINDINGS[BENCH_KERNELS] = {0, 1, 2, 1};
    static const uint32_t PUSH[BENCH_KERNELS] = {0, 0, sizeof(struct bench_saxpy_push), 4};
    struct vulkan_side *side = bench_allocate(1, sizeof *side);
    bench_device_open(&side->device, options->uuid, false, machine);
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(side->device.physical, &properties);
    side->discrete = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    for (size_t i = 0; i < BENCH_KERNELS; i++) {
        bench_pipeline_make(&side->device, &BENCH_CODE[i], BINDINGS[i], PUSH[i],
                            &side->pipelines[i]);
    }
    make_sets(side);
    bench_memory_make(&side->device, sizeof(uint32_t), false, &side->counter);
    memset(side->counter.mapped, 0, sizeof(uint32_t));
    bench_set_write(&side->device, side->sets[BENCH_COUNT], 0, &side->counter);
    side->command_pool = bench_pool_make(&side->device, side->device.family, 0);
    side->scratch_pool =
        bench_pool_make(&side->device, side->device.family, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT);
    side->scratch = bench_commands_make(&side->device, side->scratch_pool);
    side->batch_count = options->batch;
    for (enum bench_kernel i = BENCH_EMPTY; i <= BENCH_COUNT; i++) {
        side->single[i] = bench_commands_make(&side->device, side->command_pool);
        record(side, side->single[i], i, 1, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
        side->batch[i] = bench_commands_make(&side->device, side->command_pool);
        record(side, side->batch[i], i, side->batch_count, 0);
    }
    side->fence = bench_fence_make(&side->device);
    *out = (struct bench_side){
        .name = "in-process",
        .round_trip = round_trip,
        .round_trip_polling = round_trip_polling,
        .commands = commands,
        .submissions = submissions,
        .take_count = take_count,
        .saxpy = saxpy,
        .destroy = destroy,
        .self = side,
    };
}
