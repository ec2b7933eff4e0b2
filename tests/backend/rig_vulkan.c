/* The loader's entry points, with a messenger hung into each instance that is created. */
#include "rig.h"
#include "tests/harness/noise.h"

#include "worker/sandbox/driver.h"
#include "worker/vulkan/backend.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

const char *const rig_layers[] = {"VK_LAYER_KHRONOS_validation", NULL};

static atomic_uint messages;
static char last_text[2048];

static bool forced_layer;
void rig_force_layer(void) {
    forced_layer = true;
}

void rig_layer_reset(void) {
    atomic_store(&messages, 0);
}

unsigned rig_layer_messages(void) {
    return atomic_load(&messages);
}
const char *rig_layer_text(void) {
    return last_text;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL say(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT types,
                                          const VkDebugUtilsMessengerCallbackDataEXT *data,
                                          void *user) {
    (void)severity;
    (void)types;
    (void)user;
    snprintf(last_text, sizeof last_text, "%s", data->pMessage);
    fprintf(stderr, "validation layer: %s\n", data->pMessage);
    atomic_fetch_add(&messages, 1);
    return VK_FALSE;
}

/* Of the one instance with layers that lives at a time. */
static VkDebugUtilsMessengerEXT live_messenger;

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance,
                                                   const VkAllocationCallbacks *allocator) {
    PFN_vkDestroyDebugUtilsMessengerEXT destroy =
        (PFN_vkDestroyDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
            instance, "vkDestroyDebugUtilsMessengerEXT");
    if (destroy && live_messenger != VK_NULL_HANDLE) {
        destroy(instance, live_messenger, NULL);
        live_messenger = VK_NULL_HANDLE;
    }
    vkDestroyInstance(instance, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *given,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkInstance *out) {
    static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    const VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = enables,
    };
    const VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .pNext = &features,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = say,
    };
    VkInstanceCreateInfo info = *given;
    if (forced_layer) {
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = rig_layers;
    }
    const bool layered = info.enabledLayerCount > 0;
    if (layered) {
        info.pNext = &messenger;
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = extensions;
    }
    VkResult result = vkCreateInstance(&info, allocator, out);
    if (result == VK_SUCCESS && layered) {
        PFN_vkCreateDebugUtilsMessengerEXT create =
            (PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
                *out, "vkCreateDebugUtilsMessengerEXT");
        VkDebugUtilsMessengerCreateInfoEXT alone = messenger;
        alone.pNext = NULL;
        if (!create || create(*out, &alone, NULL, &live_messenger) != VK_SUCCESS) {
            abort();
        }
    }
    return result;
}

/* -- the device ------------------------------------------------------------------------------- */

static PFN_vkGetDeviceProcAddr real_device_proc;
#define REAL(name) ((PFN_##name)real_device_proc(device, #name))

/* What is not to be shared is seen by the processor, too: words. (Of the reserve nobody reads.) */
static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device,
                                                      const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkDeviceMemory *out) {
    void *bytes;
    VkResult result = REAL(vkAllocateMemory)(device, info, allocator, out);
    if (result == VK_SUCCESS && !info->pNext && info->allocationSize < BHI_DRIVER_FILE_BYTES &&
        REAL(vkMapMemory)(device, *out, 0, VK_WHOLE_SIZE, 0, &bytes) == VK_SUCCESS) {
        bht_noise(bytes, info->allocationSize);
        REAL(vkUnmapMemory)(device, *out);
    }
    return result;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_of_device(VkDevice device, const char *name) {
    const PFN_vkVoidFunction found = strcmp(name, "vkAllocateMemory") == 0
                                         ? (PFN_vkVoidFunction)allocate_memory
                                         : real_device_proc(device, name);
    return rig_call(name, rig_pools_call(name, found));
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance instance, const char *name) {
    if (strcmp(name, "vkCreateInstance") == 0) {
        return (PFN_vkVoidFunction)create_instance;
    }
    if (strcmp(name, "vkDestroyInstance") == 0) {
        return (PFN_vkVoidFunction)destroy_instance;
    }
    PFN_vkVoidFunction function = vkGetInstanceProcAddr(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        real_device_proc = (PFN_vkGetDeviceProcAddr)function;
        return (PFN_vkVoidFunction)get_of_device;
    }
    return function;
}

/* Driver and layer stay mapped after the last instance is gone: what they leave behind has their
 * name on it then, and leaks.supp can tell it from ours. */
static void pin_libraries(void) {
    static const char *const names[] = {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_NODELETE);
        if (library) {
            dlclose(library);
        }
    }
}

bhi_entry rig_entry(void) {
    pin_libraries();
    return (bhi_entry)get;
}

bool rig_is_lavapipe(void) {
    const struct bhi_vk_device *device = &bhi_vk(rig.backend)->device;
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    device->api.GetPhysicalDeviceProperties2(device->physical, &properties);
    return driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
}

/* -- the kernels of tests for every backend ------------------------------------------------- */

const struct bhi_backend_ops *const rig_ops = &bhi_vulkan;
const uint32_t rig_block[3];
const uint32_t rig_format = 1;

void rig_add_kernel(uint64_t id) {
    rig_kernel(id, CODE(add));
}

void rig_increment_kernel(uint64_t id) {
    rig_kernel(id, CODE(increment));
}

void rig_add(uint64_t kernel, uint64_t from, uint64_t to, uint32_t c) {
    rig_dispatch(kernel, 4, 1, 1, BINDINGS(READ(0, from), WRITE(1, to)), &c, sizeof c);
}

void rig_increment(uint64_t kernel, uint64_t buffer) {
    rig_dispatch(kernel, 1, 1, 1, BINDINGS(BOTH(0, buffer)), NULL, 0);
}
