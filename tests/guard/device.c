#include "device.h"

#include "stand.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call) assert_int_equal(call, VK_SUCCESS)
#define MAX_SETS   8u

static void make_buffer(struct device *d, VkDeviceSize bytes, VkBuffer *buffer,
                        VkDeviceMemory *memory, void *out_map) {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    MUST(vkCreateBuffer(d->device, &info, NULL, buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(d->device, *buffer, &needs);
    VkPhysicalDeviceMemoryProperties memories;
    vkGetPhysicalDeviceMemoryProperties(d->physical, &memories);
    /* Device-local and visible to the host: the last that fits. Else any that the host sees. */
    uint32_t type = UINT32_MAX;
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (uint32_t i = 0; i < memories.memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memories.memoryTypes[i].propertyFlags;
        if ((needs.memoryTypeBits >> i & 1) != 0 && (flags & wanted) == wanted &&
            (type == UINT32_MAX || (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0)) {
            type = i;
        }
    }
    assert_true(type != UINT32_MAX);
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = type};
    MUST(vkAllocateMemory(d->device, &allocate, NULL, memory));
    MUST(vkBindBufferMemory(d->device, *buffer, *memory, 0));
    MUST(vkMapMemory(d->device, *memory, 0, VK_WHOLE_SIZE, 0, out_map));
}

void device_open(struct device *d) {
    memset(d, 0, sizeof *d);
    /* It stays mapped when the loader lets go of it: what it keeps is then still in sight of those
     * who look for leaks. */
    void *driver_library = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);
    if (driver_library != NULL) {
        dlclose(driver_library);
    }
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                           .pApplicationInfo = &application};
    MUST(vkCreateInstance(&instance, NULL, &d->instance));
    uint32_t count = 1;
    VkResult found = vkEnumeratePhysicalDevices(d->instance, &count, &d->physical);
    assert_true(found == VK_SUCCESS || found == VK_INCOMPLETE);
    assert_int_equal(count, 1);
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    vkGetPhysicalDeviceProperties2(d->physical, &properties);
    const uint32_t sets = properties.properties.limits.maxBoundDescriptorSets;
    d->max_sets = sets < MAX_SETS ? sets : MAX_SETS;
    d->cuts = driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE &&
              strncmp(driver.driverInfo, "Mesa ", 5) == 0 && atoi(driver.driverInfo + 5) < 25;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &queue};
    MUST(vkCreateDevice(d->physical, &device, NULL, &d->device));
    vkGetDeviceQueue(d->device, 0, 0, &d->queue);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    MUST(vkCreateCommandPool(d->device, &pool, NULL, &d->pool));
    void *words, *out;
    make_buffer(d, DEVICE_OUT_BYTES, &d->out_buffer, &d->out_memory, &out);
    make_buffer(d, sizeof *d->words, &d->words_buffer, &d->words_memory, &words);
    d->out = out;
    d->words = words;
    memset(out, 0, DEVICE_OUT_BYTES);
    *d->words = (struct bhi_guard_words){0};
}

void device_close(struct device *d) {
    vkDestroyBuffer(d->device, d->out_buffer, NULL);
    vkDestroyBuffer(d->device, d->words_buffer, NULL);
    vkFreeMemory(d->device, d->out_memory, NULL);
    vkFreeMemory(d->device, d->words_memory, NULL);
    vkDestroyCommandPool(d->device, d->pool, NULL);
    vkDestroyDevice(d->device, NULL);
    vkDestroyInstance(d->instance, NULL);
}

struct program {
    VkDescriptorSetLayout sets[MAX_SETS];
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool descriptors;
    VkDescriptorSet bound[MAX_SETS];
    uint32_t count;
};

static void make_layout(struct device *d, struct program *p, uint32_t guard_set,
                        uint32_t push_size) {
    p->count = guard_set + 1;
    for (uint32_t i = 0; i < p->count; i++) {
        VkDescriptorSetLayoutBinding bindings[2];
        for (uint32_t k = 0; k < 2; k++) {
            bindings[k] =
                (VkDescriptorSetLayoutBinding){.binding = k,
                                               .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                               .descriptorCount = 1,
                                               .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
        }
        const VkDescriptorSetLayoutCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = i == 0 ? 2 : 1,
            .pBindings = bindings};
        MUST(vkCreateDescriptorSetLayout(d->device, &info, NULL, &p->sets[i]));
    }
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = push_size};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = p->count,
                                               .pSetLayouts = p->sets,
                                               .pushConstantRangeCount = push_size > 0,
                                               .pPushConstantRanges = &push};
    MUST(vkCreatePipelineLayout(d->device, &layout, NULL, &p->layout));
}

static void make_sets(struct device *d, struct program *p) {
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * MAX_SETS};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = MAX_SETS,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    MUST(vkCreateDescriptorPool(d->device, &pool, NULL, &p->descriptors));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = p->descriptors,
        .descriptorSetCount = p->count,
        .pSetLayouts = p->sets};
    MUST(vkAllocateDescriptorSets(d->device, &allocate, p->bound));
    const VkDescriptorBufferInfo out = {d->out_buffer, 0, VK_WHOLE_SIZE};
    const VkDescriptorBufferInfo words = {d->words_buffer, 0, VK_WHOLE_SIZE};
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t k = 0; k < (i == 0 ? 2u : 1u); k++) {
            const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                                .dstSet = p->bound[i],
                                                .dstBinding = k,
                                                .descriptorCount = 1,
                                                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                .pBufferInfo = i == 0 && k == 0 ? &out : &words};
            vkUpdateDescriptorSets(d->device, 1, &write, 0, NULL);
        }
    }
}

void device_run(struct device *d, const uint32_t *code, size_t words, uint32_t guard_set,
                uint32_t groups, const void *push, uint32_t push_size) {
    struct program p = {0};
    make_layout(d, &p, guard_set, push_size);
    const VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize = words * sizeof *code,
                                             .pCode = code};
    VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"},
        .layout = p.layout};
    MUST(vkCreateShaderModule(d->device, &module, NULL, &pipeline.stage.module));
    MUST(vkCreateComputePipelines(d->device, VK_NULL_HANDLE, 1, &pipeline, NULL, &p.pipeline));
    make_sets(d, &p);

    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = d->pool,
        .commandBufferCount = 1};
    VkCommandBuffer commands;
    MUST(vkAllocateCommandBuffers(d->device, &allocate, &commands));
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    MUST(vkBeginCommandBuffer(commands, &begin));
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, p.count, p.bound,
                            0, NULL);
    if (push_size > 0) {
        vkCmdPushConstants(commands, p.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_size, push);
    }
    vkCmdDispatch(commands, groups, 1, 1);
    MUST(vkEndCommandBuffer(commands));
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands};
    MUST(vkQueueSubmit(d->queue, 1, &submit, VK_NULL_HANDLE));
    MUST(vkQueueWaitIdle(d->queue));

    vkFreeCommandBuffers(d->device, d->pool, 1, &commands);
    vkDestroyDescriptorPool(d->device, p.descriptors, NULL);
    vkDestroyPipeline(d->device, p.pipeline, NULL);
    vkDestroyShaderModule(d->device, pipeline.stage.module, NULL);
    vkDestroyPipelineLayout(d->device, p.layout, NULL);
    for (uint32_t i = 0; i < p.count; i++) {
        vkDestroyDescriptorSetLayout(d->device, p.sets[i], NULL);
    }
}
