/* Vulkan entry points. All come from one vkGetInstanceProcAddr, a driver's own or the loader's.
 * Nothing here links libvulkan. */
#ifndef BHI_WORKER_VULKAN_API_H
#define BHI_WORKER_VULKAN_API_H

#include <stdbool.h>
#include <vulkan/vulkan.h>

#define BHI_VK_GLOBAL_FUNCTIONS(X) X(CreateInstance)

#define BHI_VK_INSTANCE_FUNCTIONS(X)                                                               \
    X(DestroyInstance)                                                                             \
    X(EnumeratePhysicalDevices)                                                                    \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceExternalBufferProperties)                                                   \
    X(GetPhysicalDeviceMemoryProperties2)                                                          \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                      \
    X(CreateDevice)                                                                                \
    X(GetDeviceProcAddr)

#define BHI_VK_DEVICE_FUNCTIONS(X)                                                                 \
    X(DestroyDevice)                                                                               \
    X(GetDeviceQueue)                                                                              \
    X(DeviceWaitIdle)                                                                              \
    X(QueueSubmit)                                                                                 \
    X(AllocateMemory)                                                                              \
    X(FreeMemory)                                                                                  \
    X(MapMemory)                                                                                   \
    X(GetMemoryHostPointerPropertiesEXT)                                                           \
    X(CreateBuffer)                                                                                \
    X(DestroyBuffer)                                                                               \
    X(GetBufferMemoryRequirements2)                                                                \
    X(GetBufferMemoryRequirements)                                                                 \
    X(BindBufferMemory)                                                                            \
    X(CreateFence)                                                                                 \
    X(DestroyFence)                                                                                \
    X(ResetFences)                                                                                 \
    X(GetFenceStatus)                                                                              \
    X(WaitForFences)                                                                               \
    X(CreateShaderModule)                                                                          \
    X(DestroyShaderModule)                                                                         \
    X(CreateDescriptorSetLayout)                                                                   \
    X(DestroyDescriptorSetLayout)                                                                  \
    X(CreatePipelineLayout)                                                                        \
    X(DestroyPipelineLayout)                                                                       \
    X(CreatePipelineCache)                                                                         \
    X(GetPipelineCacheData)                                                                        \
    X(DestroyPipelineCache)                                                                        \
    X(CreateComputePipelines)                                                                      \
    X(DestroyPipeline)                                                                             \
    X(CreateDescriptorPool)                                                                        \
    X(DestroyDescriptorPool)                                                                       \
    X(AllocateDescriptorSets)                                                                      \
    X(FreeDescriptorSets)                                                                          \
    X(UpdateDescriptorSets)                                                                        \
    X(CreateCommandPool)                                                                           \
    X(DestroyCommandPool)                                                                          \
    X(AllocateCommandBuffers)                                                                      \
    X(FreeCommandBuffers)                                                                          \
    X(BeginCommandBuffer)                                                                          \
    X(EndCommandBuffer)                                                                            \
    X(CmdBindPipeline)                                                                             \
    X(CmdBindDescriptorSets)                                                                       \
    X(CmdPushConstants)                                                                            \
    X(CmdDispatchBase)                                                                             \
    X(CmdDispatch)                                                                                 \
    X(CmdCopyBuffer)                                                                               \
    X(CmdFillBuffer)                                                                               \
    X(CmdUpdateBuffer)                                                                             \
    X(CmdPipelineBarrier)                                                                          \
    X(CreateQueryPool)                                                                             \
    X(DestroyQueryPool)                                                                            \
    X(ResetQueryPool)                                                                              \
    X(GetQueryPoolResults)                                                                         \
    X(CmdWriteTimestamp)

struct bhi_vk_api {
#define BHI_VK_MEMBER(name) PFN_vk##name name;
    BHI_VK_GLOBAL_FUNCTIONS(BHI_VK_MEMBER)
    BHI_VK_INSTANCE_FUNCTIONS(BHI_VK_MEMBER)
    BHI_VK_DEVICE_FUNCTIONS(BHI_VK_MEMBER)
#undef BHI_VK_MEMBER
    PFN_vkEnumerateInstanceVersion EnumerateInstanceVersion; /* NULL: Vulkan 1.0 */
    PFN_vkGetDeviceFaultInfoEXT GetDeviceFaultInfoEXT;       /* NULL: no VK_EXT_device_fault */
    PFN_vkGetMemoryFdKHR GetMemoryFdKHR; /* NULL: no VK_KHR_external_memory_fd */
    /* NULL: no VK_EXT_conditional_rendering */
    PFN_vkCmdBeginConditionalRenderingEXT CmdBeginConditionalRenderingEXT;
    PFN_vkCmdEndConditionalRenderingEXT CmdEndConditionalRenderingEXT;
};

/* Each returns NULL, or the name of a missing entry point. */
const char *bhi_vk_api_global(struct bhi_vk_api *api, PFN_vkGetInstanceProcAddr get);
const char *bhi_vk_api_instance(struct bhi_vk_api *api, PFN_vkGetInstanceProcAddr get,
                                VkInstance instance);
const char *bhi_vk_api_device(struct bhi_vk_api *api, VkDevice device);

#endif
