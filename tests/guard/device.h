/* The system's Vulkan device in this process, for guarded modules: one storage buffer "out" at set
 * 0 binding 0, the guard's words where the module has them, and the same words once more at set 0
 * binding 1, so that a kernel can set the word itself: when it is set is then no matter of time. */
#ifndef GUARD_DEVICE_H
#define GUARD_DEVICE_H

#include "guard.h"

#include <vulkan/vulkan.h>

#define DEVICE_OUT_BYTES 65536u

struct device {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkBuffer out_buffer, words_buffer;
    VkDeviceMemory out_memory, words_memory;
    uint32_t *out;                          /* DEVICE_OUT_BYTES */
    volatile struct bhi_guard_words *words; /* one */
    uint32_t max_sets;
    bool cuts; /* llvmpipe before 25: bhi_guard_options.count_iterations */
};

void device_open(struct device *device);
void device_close(struct device *device);
/* One dispatch of |groups| workgroups, waited for. |guard_set| is where the guard's buffer is, or
 * 0: the module is not guarded. */
void device_run(struct device *device, const uint32_t *code, size_t words, uint32_t guard_set,
                uint32_t groups, const void *push, uint32_t push_size);

#endif
