#include "fake_lavapipe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

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

EXPORT VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
EXPORT VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    VkResult (*negotiate)(uint32_t *) =
        !lavapipe
            ? NULL
            : (VkResult(*)(uint32_t *))dlsym(lavapipe, "vk_icdNegotiateLoaderICDInterfaceVersion");
    return !negotiate ? VK_ERROR_INITIALIZATION_FAILED : negotiate(version);
}

PFN_vkVoidFunction find_entry(const struct entry *entries, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(entries[i].name, name) == 0) {
            return entries[i].function;
        }
    }
    return NULL;
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
