#include "worker/vulkan/api.h"

#define LOAD(get, object, name)                                                                    \
    do {                                                                                           \
        api->name = (PFN_vk##name)get(object, "vk" #name);                                         \
        if (!api->name) {                                                                          \
            return "vk" #name;                                                                     \
        }                                                                                          \
    } while (0);

const char *bhi_vk_api_global(struct bhi_vk_api *api, PFN_vkGetInstanceProcAddr get) {
#define LOAD_GLOBAL(name) LOAD(get, NULL, name)
    BHI_VK_GLOBAL_FUNCTIONS(LOAD_GLOBAL)
    api->EnumerateInstanceVersion =
        (PFN_vkEnumerateInstanceVersion)get(NULL, "vkEnumerateInstanceVersion");
    return NULL;
}

const char *bhi_vk_api_instance(struct bhi_vk_api *api, PFN_vkGetInstanceProcAddr get,
                                VkInstance instance) {
#define LOAD_INSTANCE(name) LOAD(get, instance, name)
    BHI_VK_INSTANCE_FUNCTIONS(LOAD_INSTANCE)
    return NULL;
}

const char *bhi_vk_api_device(struct bhi_vk_api *api, VkDevice device) {
#define LOAD_DEVICE(name) LOAD(api->GetDeviceProcAddr, device, name)
    BHI_VK_DEVICE_FUNCTIONS(LOAD_DEVICE)
    api->GetDeviceFaultInfoEXT =
        (PFN_vkGetDeviceFaultInfoEXT)api->GetDeviceProcAddr(device, "vkGetDeviceFaultInfoEXT");
    api->GetMemoryFdKHR = (PFN_vkGetMemoryFdKHR)api->GetDeviceProcAddr(device, "vkGetMemoryFdKHR");
    api->CmdBeginConditionalRenderingEXT =
        (PFN_vkCmdBeginConditionalRenderingEXT)api->GetDeviceProcAddr(
            device, "vkCmdBeginConditionalRenderingEXT");
    api->CmdEndConditionalRenderingEXT =
        (PFN_vkCmdEndConditionalRenderingEXT)api->GetDeviceProcAddr(
            device, "vkCmdEndConditionalRenderingEXT");
    return NULL;
}
