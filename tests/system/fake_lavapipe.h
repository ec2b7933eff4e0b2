/* What the drivers have in common that compute with lavapipe and look like another: the library
 * below, and how functions are found. Each of them is linked with it. */
#ifndef BHT_FAKE_LAVAPIPE_H
#define BHT_FAKE_LAVAPIPE_H

#include <stddef.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default")))

/* Lavapipe's vk_icdGetInstanceProcAddr; set when the driver is loaded. */
extern PFN_vkGetInstanceProcAddr real;

struct entry {
    const char *name;
    PFN_vkVoidFunction function;
};

/* The one of |entries| that is called |name|, or NULL. */
PFN_vkVoidFunction find_entry(const struct entry *entries, size_t count, const char *name);
/* Makes lavapipe's memory file (since Mesa 23) as long as it will have to be, for NVIDIA's filter B
 * lets nothing be made longer. The driver keeps what it is given back. |get| is lavapipe's. */
void reserve_memory(PFN_vkGetDeviceProcAddr get, VkDevice device);

#endif
