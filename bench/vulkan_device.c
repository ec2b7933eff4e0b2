#include "vulkan_device.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEVICES  16
#define MAX_FAMILIES 16
#define MAX_BINDINGS 4

/* The first family that can do |wanted| and none of |unwanted|. */
static bool find_family(VkPhysicalDevice physical, VkQueueFlags wanted, VkQueueFlags unwanted,
                        uint32_t *out) {
    VkQueueFamilyProperties families[MAX_FAMILIES];
    uint32_t count = MAX_FAMILIES;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if ((families[i].queueFlags & (wanted | unwanted)) == wanted) {
            *out = i;
            return true;
        }
    }
    return false;
}

static void choose(struct bench_device *device, const uint8_t uuid[16],
                   struct bench_machine *machine) {
    static const uint8_t ANY[16];
    VkPhysicalDevice devices[MAX_DEVICES];
    uint32_t count = MAX_DEVICES;
    VkResult result = vkEnumeratePhysicalDevices(device->instance, &count, devices);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
        bench_die("vkEnumeratePhysicalDevices: VkResult %d", (int)result);
    }
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceDriverProperties driver = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
        VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                           .pNext = &driver};
        VkPhysicalDeviceProperties2 properties = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
        vkGetPhysicalDeviceProperties2(devices[i], &properties);
        bool wanted = memcmp(uuid, ANY, sizeof ANY) == 0 ||
                      memcmp(uuid, id.deviceUUID, sizeof id.deviceUUID) == 0;
        if (wanted && find_family(devices[i], VK_QUEUE_COMPUTE_BIT, 0, &device->family)) {
            device->physical = devices[i];
            snprintf(machine->device, sizeof machine->device, "%s",
                     properties.properties.deviceName);
            snprintf(machine->driver, sizeof machine->driver, "%.100s %.150s", driver.driverName,
                     driver.driverInfo);
            return;
        }
    }
    bench_die("no Vulkan device here (of %u) is the one that the library uses; install a driver "
              "(Debian: mesa-vulkan-drivers) or give --device",
              count);
}

void bench_device_open(struct bench_device *device, const uint8_t uuid[16], bool with_copies,
                       struct bench_machine *machine) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pApplicationName = "bench-dispatch",
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                                .pApplicationInfo = &application};
    BENCH_VK(vkCreateInstance(&instance_info, NULL, &device->instance));
    choose(device, uuid, machine);
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue_infos[2] = {{
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = device->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    }};
    with_copies = with_copies &&
                  find_family(device->physical, VK_QUEUE_TRANSFER_BIT,
                              VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT, &device->copy_family);
    queue_infos[1] = queue_infos[0];
    queue_infos[1].queueFamilyIndex = device->copy_family;
    const VkDeviceCreateInfo device_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .queueCreateInfoCount = with_copies ? 2 : 1,
        .pQueueCreateInfos = queue_infos,
    };
    BENCH_VK(vkCreateDevice(device->physical, &device_info, NULL, &device->device));
    vkGetDeviceQueue(device->device, device->family, 0, &device->queue);
    device->copy_queue = VK_NULL_HANDLE;
    if (with_copies) {
        vkGetDeviceQueue(device->device, device->copy_family, 0, &device->copy_queue);
    }
    vkGetPhysicalDeviceMemoryProperties(device->physical, &device->memory);
}

void bench_device_close(struct bench_device *device) {
    vkDeviceWaitIdle(device->device);
    vkDestroyDevice(device->device, NULL);
    vkDestroyInstance(device->instance, NULL);
}

static uint32_t choose_type(const struct bench_device *device, uint32_t allowed, bool local) {
    enum {
        OWN = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
        SHARED = VISIBLE | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
        CACHED = SHARED | VK_MEMORY_PROPERTY_HOST_CACHED_BIT
    };
    /* Local memory that the host does not see comes before memory that it does. */
    static const VkMemoryPropertyFlags wanted[2][2] = {{CACHED, SHARED}, {OWN, OWN | VISIBLE}};
    for (size_t try = 0; try < 2; try++) {
        const VkMemoryPropertyFlags all = wanted[local][try], looked = local ? OWN | VISIBLE : all;
        for (uint32_t i = 0; i < device->memory.memoryTypeCount; i++) {
            if ((allowed & (1u << i)) != 0 &&
                (device->memory.memoryTypes[i].propertyFlags & looked) == all) {
                return i;
            }
        }
    }
    bench_die(local ? "the device has no memory of its own"
                    : "the device has no memory type that the host can map");
}

void bench_memory_make(const struct bench_device *device, VkDeviceSize size, bool local,
                       struct bench_memory *out) {
    const VkBufferCreateInfo buffer_info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    *out = (struct bench_memory){.size = size};
    BENCH_VK(vkCreateBuffer(device->device, &buffer_info, NULL, &out->buffer));
    VkMemoryRequirements requirements;
    vkGetBufferMemoryRequirements(device->device, out->buffer, &requirements);
    const VkMemoryAllocateInfo allocate_info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = requirements.size,
        .memoryTypeIndex = choose_type(device, requirements.memoryTypeBits, local),
    };
    BENCH_VK(vkAllocateMemory(device->device, &allocate_info, NULL, &out->memory));
    BENCH_VK(vkBindBufferMemory(device->device, out->buffer, out->memory, 0));
    if (!local) {
        BENCH_VK(vkMapMemory(device->device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->mapped));
    }
}

void bench_memory_free(const struct bench_device *device, struct bench_memory *memory) {
    vkDestroyBuffer(device->device, memory->buffer, NULL);
    vkFreeMemory(device->device, memory->memory, NULL);
}

void bench_pipeline_make(const struct bench_device *device, const struct bench_code *code,
                         uint32_t bindings, uint32_t push, struct bench_pipeline *out) {
    VkDescriptorSetLayoutBinding layout_bindings[MAX_BINDINGS];
    for (uint32_t i = 0; i < bindings; i++) {
        layout_bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    }
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = bindings,
        .pBindings = layout_bindings,
    };
    BENCH_VK(vkCreateDescriptorSetLayout(device->device, &set_info, NULL, &out->set_layout));
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = push};
    const VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &out->set_layout,
        .pushConstantRangeCount = push > 0,
        .pPushConstantRanges = &range,
    };
    BENCH_VK(vkCreatePipelineLayout(device->device, &layout_info, NULL, &out->layout));
    const VkShaderModuleCreateInfo module_info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = code->bytes,
        .pCode = code->words,
    };
    VkShaderModule module;
    BENCH_VK(vkCreateShaderModule(device->device, &module_info, NULL, &module));
    const VkComputePipelineCreateInfo pipeline_info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = out->layout,
    };
    BENCH_VK(vkCreateComputePipelines(device->device, VK_NULL_HANDLE, 1, &pipeline_info, NULL,
                                      &out->pipeline));
    vkDestroyShaderModule(device->device, module, NULL);
}

VkDescriptorSet bench_set_make(const struct bench_device *device,
                               const struct bench_pipeline *pipeline,
                               const struct bench_memory *memories, uint32_t count,
                               VkDescriptorPool *out_pool) {
    VkDescriptorSet set;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, count};
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    BENCH_VK(vkCreateDescriptorPool(device->device, &pool, NULL, out_pool));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = *out_pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &pipeline->set_layout,
    };
    BENCH_VK(vkAllocateDescriptorSets(device->device, &allocate, &set));
    for (uint32_t i = 0; i < count; i++) {
        bench_set_write(device, set, i, &memories[i]);
    }
    return set;
}

void bench_set_write(const struct bench_device *device, VkDescriptorSet set, uint32_t binding,
                     const struct bench_memory *memory) {
    const VkDescriptorBufferInfo range = {memory->buffer, 0, VK_WHOLE_SIZE};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = set,
                                        .dstBinding = binding,
                                        .descriptorCount = 1,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = &range};
    vkUpdateDescriptorSets(device->device, 1, &write, 0, NULL);
}

void bench_pipeline_free(const struct bench_device *device, struct bench_pipeline *pipeline) {
    vkDestroyPipeline(device->device, pipeline->pipeline, NULL);
    vkDestroyPipelineLayout(device->device, pipeline->layout, NULL);
    vkDestroyDescriptorSetLayout(device->device, pipeline->set_layout, NULL);
}

VkCommandPool bench_pool_make(const struct bench_device *device, uint32_t family,
                              VkCommandPoolCreateFlags flags) {
    VkCommandPool pool;
    const VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = flags,
        .queueFamilyIndex = family,
    };
    BENCH_VK(vkCreateCommandPool(device->device, &info, NULL, &pool));
    return pool;
}

VkCommandBuffer bench_commands_make(const struct bench_device *device, VkCommandPool pool) {
    VkCommandBuffer commands;
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    BENCH_VK(vkAllocateCommandBuffers(device->device, &info, &commands));
    return commands;
}

void bench_commands_begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = usage};
    BENCH_VK(vkBeginCommandBuffer(commands, &info));
}

void bench_commands_submit(VkQueue queue, VkCommandBuffer commands, VkFence fence) {
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    BENCH_VK(vkQueueSubmit(queue, 1, &info, fence));
}

VkFence bench_fence_make(const struct bench_device *device) {
    VkFence fence;
    const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    BENCH_VK(vkCreateFence(device->device, &info, NULL, &fence));
    return fence;
}

void bench_fence_finish(const struct bench_device *device, VkFence fence) {
    BENCH_VK(vkWaitForFences(device->device, 1, &fence, VK_TRUE, 60ull * 1000 * 1000 * 1000));
    BENCH_VK(vkResetFences(device->device, 1, &fence));
}
