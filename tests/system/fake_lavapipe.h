/* What the drivers have in common that compute with lavapipe and look like another: the library
 * below, its devices, and how functions are found. Each of them is linked with it. */
#ifndef BHT_FAKE_LAVAPIPE_H
#define BHT_FAKE_LAVAPIPE_H

#include <stddef.h>
#include <vulkan/vulkan.h>

/* Lavapipe's vk_icdGetInstanceProcAddr; set when the driver is loaded. */
extern PFN_vkGetInstanceProcAddr real;

/* What a driver replaces of lavapipe's functions; the last entry has no name. */
struct entry {
    const char *name;
    PFN_vkVoidFunction function;
};
extern const struct entry own_entries[];
/* The one of |entries| that is called |name|, or NULL. */
PFN_vkVoidFunction find_entry(const struct entry *entries, const char *name);

/* Devices: an instance of lavapipe each. The first instance is what the loader gets. */
extern struct fake_device {
    VkInstance instance;
    VkPhysicalDevice physical;
    unsigned number; /* the driver's own; */
    int fd;          /* and so is this */
} devices[3];
extern uint32_t device_count;
#define REAL(name) ((PFN_##name)real(devices[0].instance, #name))
VkResult add_device(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
                    unsigned number, int fd);
struct fake_device *find_device(VkPhysicalDevice physical);
/* Entry points, for own_entries. */
void VKAPI_CALL destroy_instance(VkInstance instance, const VkAllocationCallbacks *allocator);
VkResult VKAPI_CALL enumerate_devices(VkInstance instance, uint32_t *count, VkPhysicalDevice *out);

/* Makes lavapipe's memory file (since Mesa 23) as long as it will have to be, for NVIDIA's filter B
 * lets nothing be made longer. The driver keeps what it is given back. |get| is lavapipe's. */
void reserve_memory(PFN_vkGetDeviceProcAddr get, VkDevice device);

#endif
