/* A driver that has two devices, and computes with lavapipe on both. */
#include "fake_lavapipe.h"

#include <stdio.h>
#include <string.h>

#define DEVICES 2u

static VkInstance instances[DEVICES];
static VkPhysicalDevice devices[DEVICES];

#define REAL(name) ((PFN_##name)real(instances[0], #name))

static void VKAPI_CALL destroy_instance(VkInstance instance,
                                        const VkAllocationCallbacks *allocator) {
    (void)instance;
    for (uint32_t i = 0; i < DEVICES && instances[i] != VK_NULL_HANDLE; i++) {
        ((PFN_vkDestroyInstance)real(instances[i], "vkDestroyInstance"))(instances[i], allocator);
        instances[i] = VK_NULL_HANDLE;
    }
}

static VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                           const VkAllocationCallbacks *allocator,
                                           VkInstance *out) {
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)real(NULL, "vkCreateInstance");
    for (uint32_t i = 0; i < DEVICES; i++) {
        VkResult result = create(info, allocator, &instances[i]);
        uint32_t one = 1;
        if (result == VK_SUCCESS) {
            result = ((PFN_vkEnumeratePhysicalDevices)real(
                instances[i], "vkEnumeratePhysicalDevices"))(instances[i], &one, &devices[i]);
        }
        if (result < 0) {
            destroy_instance(instances[0], allocator);
            return result;
        }
    }
    *out = instances[0];
    return VK_SUCCESS;
}

static VkResult VKAPI_CALL enumerate_devices(VkInstance instance, uint32_t *count,
                                             VkPhysicalDevice *out) {
    (void)instance;
    for (uint32_t i = 0; out && i < DEVICES && i < *count; i++) {
        out[i] = devices[i];
    }
    *count = DEVICES;
    return VK_SUCCESS;
}

static uint32_t number_of(VkPhysicalDevice physical) {
    return physical == devices[1] ? 1 : 0;
}

static void VKAPI_CALL properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    REAL(vkGetPhysicalDeviceProperties2)(physical, out);
    snprintf(out->properties.deviceName, sizeof out->properties.deviceName, "Twin %u",
             number_of(physical));
    for (VkBaseOutStructure *next = out->pNext; next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES) {
            VkPhysicalDeviceIDProperties *id = (void *)next;
            id->deviceUUID[VK_UUID_SIZE - 1] ^= (uint8_t)number_of(physical);
        }
    }
}

EXPORT PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name);
EXPORT PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name) {
    static const struct entry own[] = {
        {"vkCreateInstance", (PFN_vkVoidFunction)create_instance},
        {"vkDestroyInstance", (PFN_vkVoidFunction)destroy_instance},
        {"vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)enumerate_devices},
        {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)properties2},
    };
    PFN_vkVoidFunction ours = find_entry(own, sizeof own / sizeof *own, name);
    return ours ? ours : real(instance, name);
}
