/* A module on a Vulkan device in this process, guarded or as it is, in device-local memory. */
#ifndef BENCH_GUARD_DEVICE_H
#define BENCH_GUARD_DEVICE_H

#include "bench.h"
#include "worker/guard/guard.h"
#include "worker/vulkan/device.h"

struct guard_memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
};

struct guard_device {
    struct bhi_vk_device vk;
    VkPhysicalDeviceProperties properties;
    VkCommandPool pool;
    VkDescriptorPool descriptors;
    VkDescriptorSetLayout data_layout, words_layout;
    VkFence fence;
    struct guard_memory x, y, words;
};

struct guard_program {
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorSet sets[2];
    VkCommandBuffer commands;
    uint32_t set_count;
};

/* Both buffers have |bytes|. Every failure ends the program. */
void guard_device_open(struct guard_device *device, VkDeviceSize bytes);
void guard_device_close(struct guard_device *device);
/* The module as the worker would guard it; the caller frees it with bhi_guarded_fini(). */
struct bhi_guarded guard_device_guard(const struct guard_device *device, const uint32_t *code,
                                      size_t words);
/* |guarded| NULL: as it is. Records |repeat| dispatches, one after the other. */
struct guard_program guard_program_make(struct guard_device *device, const uint32_t *code,
                                        size_t words, const struct bhi_guarded *guarded);
void guard_program_record(struct guard_device *device, struct guard_program *program,
                          const uint32_t groups[3], uint32_t n, uint32_t repeat);
/* Nanoseconds from the submission to the fence. */
uint64_t guard_program_run(struct guard_device *device, const struct guard_program *program);
void guard_program_free(struct guard_device *device, struct guard_program *program);

#endif
