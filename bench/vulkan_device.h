/* In-process Vulkan, the way a host without isolation has it: through the loader, one compute
 * queue. Every failure ends the program. */
#ifndef BENCH_VULKAN_DEVICE_H
#define BENCH_VULKAN_DEVICE_H

#include "bench.h"
#include <vulkan/vulkan.h>

#define BENCH_VK(call)                                                                             \
    do {                                                                                           \
        VkResult bench_result = (call);                                                            \
        if (bench_result != VK_SUCCESS) {                                                          \
            bench_die("%s: VkResult %d", #call, (int)bench_result);                                \
        }                                                                                          \
    } while (0)

struct bench_device {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    /* Of a family for transfers alone; VK_NULL_HANDLE: it was not asked for, or there is none. */
    VkQueue copy_queue;
    uint32_t copy_family;
    VkPhysicalDeviceMemoryProperties memory;
};

struct bench_memory {
    VkDeviceMemory memory;
    VkBuffer buffer;
    void *mapped;
    VkDeviceSize size;
};

struct bench_pipeline {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
};

/* |uuid| all zero: the first device that computes. |with_copies|: with a queue for copies, too, if
 * the device has one. */
void bench_device_open(struct bench_device *device, const uint8_t uuid[16], bool with_copies,
                       struct bench_machine *machine);
void bench_device_close(struct bench_device *device);
/* A storage buffer, which copies may use, too: in memory that host and device see, mapped, cached for
 * the host where it can be; or |local|: in the device's own, not mapped. */
void bench_memory_make(const struct bench_device *device, VkDeviceSize size, bool local,
                       struct bench_memory *out);
void bench_memory_free(const struct bench_device *device, struct bench_memory *memory);
/* |bindings| storage buffers in set 0, |push| bytes of push constants. */
void bench_pipeline_make(const struct bench_device *device, const struct bench_code *code,
                         uint32_t bindings, uint32_t push, struct bench_pipeline *out);
void bench_pipeline_free(const struct bench_device *device, struct bench_pipeline *pipeline);
/* A set of |count| bindings from 0 on, and the pool from which it is. */
VkDescriptorSet bench_set_make(const struct bench_device *device,
                               const struct bench_pipeline *pipeline,
                               const struct bench_memory *memories, uint32_t count,
                               VkDescriptorPool *out_pool);
void bench_set_write(const struct bench_device *device, VkDescriptorSet set, uint32_t binding,
                     const struct bench_memory *memory);

VkCommandPool bench_pool_make(const struct bench_device *device, uint32_t family,
                              VkCommandPoolCreateFlags flags);
VkCommandBuffer bench_commands_make(const struct bench_device *device, VkCommandPool pool);
void bench_commands_begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage);
void bench_commands_submit(VkQueue queue, VkCommandBuffer commands, VkFence fence);
VkFence bench_fence_make(const struct bench_device *device);
/* Waits for the fence, for a minute at most, and resets it. */
void bench_fence_finish(const struct bench_device *device, VkFence fence);

#endif
