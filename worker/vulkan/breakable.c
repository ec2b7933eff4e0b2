#include "worker/vulkan/breakable.h"

#if BHI_FAULTS

#include "worker/faults/faults.h"

/* X(name, point, parameters, arguments) for each function that returns a VkResult. */
#define BREAKABLE(X)                                                                               \
    X(CreateInstance, "vk",                                                                        \
      (const VkInstanceCreateInfo *a, const VkAllocationCallbacks *b, VkInstance *c), (a, b, c))   \
    X(EnumeratePhysicalDevices, "vk", (VkInstance a, uint32_t *b, VkPhysicalDevice *c), (a, b, c)) \
    X(EnumerateDeviceExtensionProperties, "vk",                                                    \
      (VkPhysicalDevice a, const char *b, uint32_t *c, VkExtensionProperties *d), (a, b, c, d))    \
    X(CreateDevice, "vk",                                                                          \
      (VkPhysicalDevice a, const VkDeviceCreateInfo *b, const VkAllocationCallbacks *c,            \
       VkDevice *d),                                                                               \
      (a, b, c, d))                                                                                \
    X(DeviceWaitIdle, "vk", (VkDevice a), (a))                                                     \
    X(QueueSubmit, "vk", (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence d), (a, b, c, d))  \
    X(AllocateMemory, "vk",                                                                        \
      (VkDevice a, const VkMemoryAllocateInfo *b, const VkAllocationCallbacks *c,                  \
       VkDeviceMemory *d),                                                                         \
      (a, b, c, d))                                                                                \
    X(MapMemory, "vk",                                                                             \
      (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize d, VkMemoryMapFlags e,           \
       void **f),                                                                                  \
      (a, b, c, d, e, f))                                                                          \
    X(GetMemoryHostPointerPropertiesEXT, "vk",                                                     \
      (VkDevice a, VkExternalMemoryHandleTypeFlagBits b, const void *c,                            \
       VkMemoryHostPointerPropertiesEXT *d),                                                       \
      (a, b, c, d))                                                                                \
    X(CreateBuffer, "vk",                                                                          \
      (VkDevice a, const VkBufferCreateInfo *b, const VkAllocationCallbacks *c, VkBuffer *d),      \
      (a, b, c, d))                                                                                \
    X(BindBufferMemory, "vk", (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d),          \
      (a, b, c, d))                                                                                \
    X(CreateFence, "vk",                                                                           \
      (VkDevice a, const VkFenceCreateInfo *b, const VkAllocationCallbacks *c, VkFence *d),        \
      (a, b, c, d))                                                                                \
    X(ResetFences, "vk", (VkDevice a, uint32_t b, const VkFence *c), (a, b, c))                    \
    X(GetFenceStatus, "vk_poll", (VkDevice a, VkFence b), (a, b))                                  \
    X(WaitForFences, "vk", (VkDevice a, uint32_t b, const VkFence *c, VkBool32 d, uint64_t e),     \
      (a, b, c, d, e))                                                                             \
    X(CreateShaderModule, "vk",                                                                    \
      (VkDevice a, const VkShaderModuleCreateInfo *b, const VkAllocationCallbacks *c,              \
       VkShaderModule *d),                                                                         \
      (a, b, c, d))                                                                                \
    X(CreateDescriptorSetLayout, "vk",                                                             \
      (VkDevice a, const VkDescriptorSetLayoutCreateInfo *b, const VkAllocationCallbacks *c,       \
       VkDescriptorSetLayout *d),                                                                  \
      (a, b, c, d))                                                                                \
    X(CreatePipelineLayout, "vk",                                                                  \
      (VkDevice a, const VkPipelineLayoutCreateInfo *b, const VkAllocationCallbacks *c,            \
       VkPipelineLayout *d),                                                                       \
      (a, b, c, d))                                                                                \
    X(CreateComputePipelines, "vk",                                                                \
      (VkDevice a, VkPipelineCache b, uint32_t c, const VkComputePipelineCreateInfo *d,            \
       const VkAllocationCallbacks *e, VkPipeline *f),                                             \
      (a, b, c, d, e, f))                                                                          \
    X(CreateDescriptorPool, "vk",                                                                  \
      (VkDevice a, const VkDescriptorPoolCreateInfo *b, const VkAllocationCallbacks *c,            \
       VkDescriptorPool *d),                                                                       \
      (a, b, c, d))                                                                                \
    X(AllocateDescriptorSets, "vk",                                                                \
      (VkDevice a, const VkDescriptorSetAllocateInfo *b, VkDescriptorSet *c), (a, b, c))           \
    X(FreeDescriptorSets, "vk",                                                                    \
      (VkDevice a, VkDescriptorPool b, uint32_t c, const VkDescriptorSet *d), (a, b, c, d))        \
    X(CreateCommandPool, "vk",                                                                     \
      (VkDevice a, const VkCommandPoolCreateInfo *b, const VkAllocationCallbacks *c,               \
       VkCommandPool *d),                                                                          \
      (a, b, c, d))                                                                                \
    X(AllocateCommandBuffers, "vk",                                                                \
      (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c), (a, b, c))           \
    X(BeginCommandBuffer, "vk", (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b))    \
    X(EndCommandBuffer, "vk", (VkCommandBuffer a), (a))                                            \
    X(CreateQueryPool, "vk",                                                                       \
      (VkDevice a, const VkQueryPoolCreateInfo *b, const VkAllocationCallbacks *c,                 \
       VkQueryPool *d),                                                                            \
      (a, b, c, d))                                                                                \
    X(GetQueryPoolResults, "vk",                                                                   \
      (VkDevice a, VkQueryPool b, uint32_t c, uint32_t d, size_t e, void *f, VkDeviceSize g,       \
       VkQueryResultFlags h),                                                                      \
      (a, b, c, d, e, f, g, h))

/* The driver's own functions. One copy is enough, because a worker has one device. */
static struct bhi_vk_api real;

#define WRAPPER(name, point, parameters, arguments)                                                \
    static VKAPI_ATTR VkResult VKAPI_CALL break_##name parameters {                                \
        const VkResult fails = (VkResult)bhi_fault_vulkan("start_" point, point);                  \
        return fails != VK_SUCCESS ? fails : real.name arguments;                                  \
    }
BREAKABLE(WRAPPER)

void bhi_vk_breakable(struct bhi_vk_api *api) {
#define WRAP(name, point, parameters, arguments)                                                   \
    if (api->name && api->name != break_##name) {                                                  \
        real.name = api->name;                                                                     \
        api->name = break_##name;                                                                  \
    }
    BREAKABLE(WRAP)
}

#endif
