#include "guard_device.h"

#include "vulkan_device.h"

#include <string.h>

static uint32_t memory_type(const struct guard_device *d, uint32_t allowed,
                            VkMemoryPropertyFlags wanted) {
    for (uint32_t i = 0; i < d->vk.memory.memoryTypeCount; i++) {
        if ((allowed >> i & 1) != 0 &&
            (d->vk.memory.memoryTypes[i].propertyFlags & wanted) == wanted) {
            return i;
        }
    }
    return UINT32_MAX;
}

static struct guard_memory make_memory(struct guard_device *d, VkDeviceSize bytes,
                                       VkMemoryPropertyFlags wanted) {
    struct guard_memory m;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    BENCH_VK(d->vk.api.CreateBuffer(d->vk.device, &info, NULL, &m.buffer));
    VkMemoryRequirements needs;
    d->vk.api.GetBufferMemoryRequirements(d->vk.device, m.buffer, &needs);
    uint32_t type = memory_type(d, needs.memoryTypeBits, wanted);
    if (type == UINT32_MAX) {
        type = memory_type(d, needs.memoryTypeBits, 0);
    }
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = type};
    BENCH_VK(d->vk.api.AllocateMemory(d->vk.device, &allocate, NULL, &m.memory));
    BENCH_VK(d->vk.api.BindBufferMemory(d->vk.device, m.buffer, m.memory, 0));
    return m;
}

static void free_memory(struct guard_device *d, struct guard_memory *m) {
    d->vk.api.DestroyBuffer(d->vk.device, m->buffer, NULL);
    d->vk.api.FreeMemory(d->vk.device, m->memory, NULL);
}

static VkDescriptorSetLayout make_set_layout(struct guard_device *d, uint32_t count) {
    VkDescriptorSetLayoutBinding bindings[2];
    for (uint32_t i = 0; i < count; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                     VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    }
    const VkDescriptorSetLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = count,
        .pBindings = bindings};
    VkDescriptorSetLayout layout;
    BENCH_VK(d->vk.api.CreateDescriptorSetLayout(d->vk.device, &info, NULL, &layout));
    return layout;
}

static VkCommandBuffer begin(struct guard_device *d) {
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = d->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBuffer commands;
    BENCH_VK(d->vk.api.AllocateCommandBuffers(d->vk.device, &allocate, &commands));
    BENCH_VK(d->vk.api.BeginCommandBuffer(commands, &info));
    return commands;
}

static uint64_t submit(struct guard_device *d, VkCommandBuffer commands) {
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    const uint64_t start = bench_now_ns();
    BENCH_VK(d->vk.api.QueueSubmit(d->vk.queue, 1, &info, d->fence));
    BENCH_VK(d->vk.api.WaitForFences(d->vk.device, 1, &d->fence, VK_TRUE, UINT64_MAX));
    const uint64_t end = bench_now_ns();
    BENCH_VK(d->vk.api.ResetFences(d->vk.device, 1, &d->fence));
    return end - start;
}

void guard_device_open(struct guard_device *d, VkDeviceSize bytes) {
    memset(d, 0, sizeof *d);
    const struct bhi_backend_config config = {.ops = &bhi_vulkan,
                                              .entry = (bhi_entry)vkGetInstanceProcAddr};
    struct bhi_error error;
    if (!bhi_vk_device_init(&d->vk, &config, &error)) {
        bench_die("%s", bhi_error_line(&error));
    }
    const struct bhi_vk_api *api = &d->vk.api;
    api->GetPhysicalDeviceProperties(d->vk.physical, &d->properties);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = d->vk.queue_family};
    BENCH_VK(api->CreateCommandPool(d->vk.device, &pool, NULL, &d->pool));
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 64};
    const VkDescriptorPoolCreateInfo descriptors = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
        .maxSets = 32,
        .poolSizeCount = 1,
        .pPoolSizes = &size};
    BENCH_VK(api->CreateDescriptorPool(d->vk.device, &descriptors, NULL, &d->descriptors));
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    BENCH_VK(api->CreateFence(d->vk.device, &fence, NULL, &d->fence));
    d->data_layout = make_set_layout(d, 2);
    d->words_layout = make_set_layout(d, 1);
    d->x = make_memory(d, bytes, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    d->y = make_memory(d, bytes, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    d->words =
        make_memory(d, 256,
                    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    VkCommandBuffer commands = begin(d);
    api->CmdFillBuffer(commands, d->x.buffer, 0, VK_WHOLE_SIZE, 0x3f000000u);
    api->CmdFillBuffer(commands, d->y.buffer, 0, VK_WHOLE_SIZE, 0);
    api->CmdFillBuffer(commands, d->words.buffer, 0, VK_WHOLE_SIZE, 0);
    BENCH_VK(api->EndCommandBuffer(commands));
    submit(d, commands);
    api->FreeCommandBuffers(d->vk.device, d->pool, 1, &commands);
}

void guard_device_close(struct guard_device *d) {
    const struct bhi_vk_api *api = &d->vk.api;
    free_memory(d, &d->x);
    free_memory(d, &d->y);
    free_memory(d, &d->words);
    api->DestroyFence(d->vk.device, d->fence, NULL);
    api->DestroyDescriptorSetLayout(d->vk.device, d->data_layout, NULL);
    api->DestroyDescriptorSetLayout(d->vk.device, d->words_layout, NULL);
    api->DestroyDescriptorPool(d->vk.device, d->descriptors, NULL);
    api->DestroyCommandPool(d->vk.device, d->pool, NULL);
    bhi_vk_device_fini(&d->vk);
}

struct bhi_guarded guard_device_guard(const struct guard_device *d, const uint32_t *code,
                                      size_t words) {
    const struct bhi_guard_options options = {
        .entry = "main",
        .max_sets = d->vk.limits.maxBoundDescriptorSets,
        .zero_initialize = d->vk.enabled.v13.shaderZeroInitializeWorkgroupMemory,
        .in_parts = d->vk.in_parts,
    };
    struct bhi_guarded guarded;
    struct bhi_error error;
    if (!bhi_guard(code, words, &options, &guarded, &error)) {
        bench_die("the guard: %s", bhi_error_line(&error));
    }
    if (!bhi_validate(&d->vk.target, guarded.code, guarded.words, "main", &error)) {
        bench_die("what the guard has made: %s", bhi_error_line(&error));
    }
    return guarded;
}

static void bind(struct guard_device *d, VkDescriptorSet set, uint32_t binding,
                 const struct guard_memory *memory) {
    const VkDescriptorBufferInfo buffer = {memory->buffer, 0, VK_WHOLE_SIZE};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = set,
                                        .dstBinding = binding,
                                        .descriptorCount = 1,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = &buffer};
    d->vk.api.UpdateDescriptorSets(d->vk.device, 1, &write, 0, NULL);
}

struct guard_program guard_program_make(struct guard_device *d, const uint32_t *code, size_t words,
                                        const struct bhi_guarded *guarded) {
    const struct bhi_vk_api *api = &d->vk.api;
    struct guard_program p = {.set_count = guarded ? 2 : 1};
    const VkDescriptorSetLayout layouts[2] = {d->data_layout, d->words_layout};
    if (guarded && guarded->set != 1) {
        bench_die("the guard's set is %u", guarded->set);
    }
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint32_t)};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = p.set_count,
                                               .pSetLayouts = layouts,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &push};
    BENCH_VK(api->CreatePipelineLayout(d->vk.device, &layout, NULL, &p.layout));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = d->descriptors,
        .descriptorSetCount = p.set_count,
        .pSetLayouts = layouts};
    BENCH_VK(api->AllocateDescriptorSets(d->vk.device, &allocate, p.sets));
    bind(d, p.sets[0], 0, &d->x);
    bind(d, p.sets[0], 1, &d->y);
    if (guarded) {
        bind(d, p.sets[1], 0, &d->words);
    }
    const VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize =
                                                 (guarded ? guarded->words : words) * sizeof *code,
                                             .pCode = guarded ? guarded->code : code};
    VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"},
        .layout = p.layout};
    BENCH_VK(api->CreateShaderModule(d->vk.device, &module, NULL, &pipeline.stage.module));
    BENCH_VK(
        api->CreateComputePipelines(d->vk.device, VK_NULL_HANDLE, 1, &pipeline, NULL, &p.pipeline));
    api->DestroyShaderModule(d->vk.device, pipeline.stage.module, NULL);
    return p;
}

void guard_program_record(struct guard_device *d, struct guard_program *p, const uint32_t groups[3],
                          uint32_t n, uint32_t repeat) {
    const struct bhi_vk_api *api = &d->vk.api;
    if (p->commands != VK_NULL_HANDLE) {
        api->FreeCommandBuffers(d->vk.device, d->pool, 1, &p->commands);
    }
    p->commands = begin(d);
    api->CmdBindPipeline(p->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    api->CmdBindDescriptorSets(p->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0,
                               p->set_count, p->sets, 0, NULL);
    api->CmdPushConstants(p->commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof n, &n);
    for (uint32_t i = 0; i < repeat; i++) {
        const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                         .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                         .dstAccessMask = VK_ACCESS_SHADER_READ_BIT |
                                                          VK_ACCESS_SHADER_WRITE_BIT};
        api->CmdDispatch(p->commands, groups[0], groups[1], groups[2]);
        api->CmdPipelineBarrier(p->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL, 0,
                                NULL);
    }
    BENCH_VK(api->EndCommandBuffer(p->commands));
}

uint64_t guard_program_run(struct guard_device *d, const struct guard_program *p) {
    return submit(d, p->commands);
}

void guard_program_free(struct guard_device *d, struct guard_program *p) {
    const struct bhi_vk_api *api = &d->vk.api;
    if (p->commands != VK_NULL_HANDLE) {
        api->FreeCommandBuffers(d->vk.device, d->pool, 1, &p->commands);
    }
    BENCH_VK(api->FreeDescriptorSets(d->vk.device, d->descriptors, p->set_count, p->sets));
    api->DestroyPipeline(d->vk.device, p->pipeline, NULL);
    api->DestroyPipelineLayout(d->vk.device, p->layout, NULL);
}
