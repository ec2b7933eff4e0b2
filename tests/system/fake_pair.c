/* A driver that has two devices, and computes with lavapipe on both. */
#include "fake_lavapipe.h"

#include <stdio.h>

static VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                           const VkAllocationCallbacks *allocator,
                                           VkInstance *out) {
    for (unsigned number = 0; number < 2; number++) {
        const VkResult result = add_device(info, allocator, number, -1);
        if (result != VK_SUCCESS) {
            destroy_instance(VK_NULL_HANDLE, allocator);
            return result;
        }
    }
    *out = devices[0].instance;
    return VK_SUCCESS;
}

static void VKAPI_CALL properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    const unsigned number = find_device(physical)->number;
    REAL(vkGetPhysicalDeviceProperties2)(physical, out);
    snprintf(out->properties.deviceName, sizeof out->properties.deviceName, "Twin %u", number);
    for (VkBaseOutStructure *next = out->pNext; next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES) {
            VkPhysicalDeviceIDProperties *id = (void *)next;
            id->deviceUUID[VK_UUID_SIZE - 1] ^= (uint8_t)number;
        }
    }
}

const struct entry own_entries[] = {
    {"vkCreateInstance", (PFN_vkVoidFunction)create_instance},
    {"vkDestroyInstance", (PFN_vkVoidFunction)destroy_instance},
    {"vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)enumerate_devices},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)properties2},
    {0},
};
