#include "fake_lavapipe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESERVE (UINT64_C(32) << 20) /* half of the longest file that a worker may have */

PFN_vkGetInstanceProcAddr real;
static void *lavapipe;

__attribute__((constructor)) static void load(void) {
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    lavapipe = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_LOCAL);
    if (lavapipe) {
        real = (PFN_vkGetInstanceProcAddr)dlsym(lavapipe, "vk_icdGetInstanceProcAddr");
    }
}

#define EXPORT __attribute__((visibility("default")))

EXPORT VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
EXPORT VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    VkResult (*negotiate)(uint32_t *) =
        !lavapipe
            ? NULL
            : (VkResult(*)(uint32_t *))dlsym(lavapipe, "vk_icdNegotiateLoaderICDInterfaceVersion");
    return !negotiate ? VK_ERROR_INITIALIZATION_FAILED : negotiate(version);
}

PFN_vkVoidFunction find_entry(const struct entry *entries, const char *name) {
    while (entries->name && strcmp(entries->name, name) != 0) {
        entries++;
    }
    return entries->function;
}

EXPORT PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name);
EXPORT PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name) {
    PFN_vkVoidFunction own = find_entry(own_entries, name);
    return own ? own : real(instance, name);
}

struct fake_device devices[3];
uint32_t device_count;

void VKAPI_CALL destroy_instance(VkInstance instance, const VkAllocationCallbacks *allocator) {
    (void)instance;
    while (device_count > 0) {
        const struct fake_device *last = &devices[--device_count];
        ((PFN_vkDestroyInstance)real(last->instance, "vkDestroyInstance"))(last->instance,
                                                                           allocator);
        if (last->fd >= 0) {
            close(last->fd);
        }
    }
}

VkResult add_device(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
                    unsigned number, int fd) {
    struct fake_device *added = &devices[device_count];
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)real(NULL, "vkCreateInstance");
    *added = (struct fake_device){.number = number, .fd = fd};
    VkResult result = create(info, allocator, &added->instance);
    if (result != VK_SUCCESS) {
        return result;
    }
    device_count++;
    PFN_vkEnumeratePhysicalDevices enumerate =
        (PFN_vkEnumeratePhysicalDevices)real(added->instance, "vkEnumeratePhysicalDevices");
    uint32_t one = 1;
    result = enumerate(added->instance, &one, &added->physical);
    return result < 0 ? result : VK_SUCCESS;
}

struct fake_device *find_device(VkPhysicalDevice physical) {
    uint32_t i = 0;
    while (i + 1 < device_count && devices[i].physical != physical) {
        i++;
    }
    return &devices[i];
}

VkResult VKAPI_CALL enumerate_devices(VkInstance instance, uint32_t *count, VkPhysicalDevice *out) {
    (void)instance;
    for (uint32_t i = 0; out && i < device_count && i < *count; i++) {
        out[i] = devices[i].physical;
    }
    *count = device_count;
    return VK_SUCCESS;
}

void reserve_memory(PFN_vkGetDeviceProcAddr get, VkDevice device) {
    PFN_vkAllocateMemory allocate = (PFN_vkAllocateMemory)get(device, "vkAllocateMemory");
    PFN_vkFreeMemory give_back = (PFN_vkFreeMemory)get(device, "vkFreeMemory");
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = RESERVE};
    VkDeviceMemory memory;
    if (allocate(device, &info, NULL, &memory) == VK_SUCCESS) {
        give_back(device, memory, NULL);
    }
}
