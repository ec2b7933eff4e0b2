/* Calls of the driver that can be made to fail (rig_fail_call). A call that makes something leaves rubbish in
 * the place of it then, as a driver may. Where the device is said to be lost, it has ended its work in truth:
 * nothing is taken down while it runs. */
#include "rig.h"

struct rig_failing rig_failing;

static bool fails(const char *name) {
    struct rig_failing *f = &rig_failing;
    if (f->lost && f->name && strcmp(name, "QueueSubmit") == 0) {
        BHT_FAIL("%s has failed, and more is submitted", f->name);
    }
    const bool now = f->name && strcmp(f->name, name) == 0 && ++f->seen == f->which;
    f->lost |= now && strstr(name, "Fence") && strcmp(name, "CreateFence") != 0;
    return now;
}

static void spoil(void *made) {
    if (made) {
        memset(made, 0xb5, sizeof(void *));
    }
}

/* |first| is done before it fails. |made|: where it puts what it makes, or NULL. */
#define CALL(name, first, made, parameters, ...)                                                   \
    static PFN_vk##name real_##name;                                                               \
    static VKAPI_ATTR VkResult VKAPI_CALL call_##name parameters {                                 \
        if (!fails(#name)) {                                                                       \
            return real_##name(__VA_ARGS__);                                                       \
        }                                                                                          \
        (void)(first);                                                                             \
        spoil(made);                                                                               \
        return rig_failing.result;                                                                 \
    }
#define MAKES(name, Info, Made)                                                                    \
    CALL(name, 0, d, (VkDevice a, const Info *b, const VkAllocationCallbacks *c, Made *d), a, b,   \
         c, d)

MAKES(AllocateMemory, VkMemoryAllocateInfo, VkDeviceMemory)
MAKES(CreateBuffer, VkBufferCreateInfo, VkBuffer)
MAKES(CreateCommandPool, VkCommandPoolCreateInfo, VkCommandPool)
MAKES(CreateDescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool)
MAKES(CreateDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo, VkDescriptorSetLayout)
MAKES(CreateFence, VkFenceCreateInfo, VkFence)
MAKES(CreatePipelineCache, VkPipelineCacheCreateInfo, VkPipelineCache)
MAKES(CreatePipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)
MAKES(CreateQueryPool, VkQueryPoolCreateInfo, VkQueryPool)
MAKES(CreateShaderModule, VkShaderModuleCreateInfo, VkShaderModule)
CALL(AllocateCommandBuffers, 0, c,
     (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c), a, b, c)
CALL(AllocateDescriptorSets, 0, c,
     (VkDevice a, const VkDescriptorSetAllocateInfo *b, VkDescriptorSet *c), a, b, c)
CALL(BeginCommandBuffer, 0, NULL, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), a, b)
CALL(BindBufferMemory, 0, NULL, (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d), a, b, c,
     d)
CALL(CreateComputePipelines, 0, f,
     (VkDevice a, VkPipelineCache b, uint32_t c, const VkComputePipelineCreateInfo *d,
      const VkAllocationCallbacks *e, VkPipeline *f),
     a, b, c, d, e, f)
CALL(EndCommandBuffer, real_EndCommandBuffer(a), NULL, (VkCommandBuffer a), a)
CALL(DeviceWaitIdle, real_DeviceWaitIdle(a), NULL, (VkDevice a), a)
CALL(GetFenceStatus, real_DeviceWaitIdle(a), NULL, (VkDevice a, VkFence b), a, b)
CALL(GetMemoryFdKHR, 0, NULL, (VkDevice a, const VkMemoryGetFdInfoKHR *b, int *c), a, b, c)
CALL(GetMemoryHostPointerPropertiesEXT, 0, NULL,
     (VkDevice a, VkExternalMemoryHandleTypeFlagBits b, const void *c,
      VkMemoryHostPointerPropertiesEXT *d),
     a, b, c, d)
CALL(MapMemory, 0, f,
     (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize d, VkMemoryMapFlags e, void **f),
     a, b, c, d, e, f)
CALL(QueueSubmit, 0, NULL, (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence d), a, b, c, d)
CALL(ResetFences, (real_DeviceWaitIdle(a), real_ResetFences(a, b, c)), NULL,
     (VkDevice a, uint32_t b, const VkFence *c), a, b, c)
CALL(WaitForFences, real_DeviceWaitIdle(a), NULL,
     (VkDevice a, uint32_t b, const VkFence *c, VkBool32 d, uint64_t e), a, b, c, d, e)

#define ROW(name)                                                                                  \
    {"vk" #name, (PFN_vkVoidFunction)call_##name, (PFN_vkVoidFunction *)(void *)&real_##name}
static const struct {
    const char *name;
    PFN_vkVoidFunction call, *real;
} calls[] = {
    ROW(AllocateMemory),
    ROW(CreateBuffer),
    ROW(CreateCommandPool),
    ROW(CreateDescriptorPool),
    ROW(CreateDescriptorSetLayout),
    ROW(CreateFence),
    ROW(CreatePipelineCache),
    ROW(CreatePipelineLayout),
    ROW(CreateQueryPool),
    ROW(CreateShaderModule),
    ROW(AllocateCommandBuffers),
    ROW(AllocateDescriptorSets),
    ROW(BeginCommandBuffer),
    ROW(BindBufferMemory),
    ROW(CreateComputePipelines),
    ROW(EndCommandBuffer),
    ROW(GetFenceStatus),
    ROW(GetMemoryFdKHR),
    ROW(GetMemoryHostPointerPropertiesEXT),
    ROW(MapMemory),
    ROW(QueueSubmit),
    ROW(ResetFences),
    ROW(WaitForFences),
    ROW(DeviceWaitIdle),
};

PFN_vkVoidFunction rig_call(const char *name, PFN_vkVoidFunction real) {
    for (size_t i = 0; real && i < BHT_COUNT(calls); i++) {
        if (strcmp(calls[i].name, name) == 0) {
            *calls[i].real = real;
            return calls[i].call;
        }
    }
    return real;
}

const char *rig_call_name(size_t index) {
    return index < BHT_COUNT(calls) ? calls[index].name + strlen("vk") : NULL;
}

void rig_fail_call(const char *name, unsigned which, VkResult result) {
    rig_failing = (struct rig_failing){name, which, 0, result, false};
}
