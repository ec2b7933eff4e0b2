#include "runner.h"

#include <bulkhead/bulkhead.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) assert_int_equal((call), VK_SUCCESS)

struct memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint32_t *mapped;
};

void runner_open(struct runner *d) {
    memset(d, 0, sizeof *d);
    /* They stay mapped: a leak of theirs has a name then, which the suppressions know. */
    static const char *const names[] = {"libvulkan_lvp.so", "libVkLayer_MESA_device_select.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_NODELETE);
        if (library != NULL) {
            dlclose(library);
        }
    }
    const struct bhi_backend_config config = {.get_instance_proc_addr = vkGetInstanceProcAddr};
    struct bhi_fault fault;
    if (!bhi_vk_device_init(&d->vk, &config, &fault)) {
        fail_msg("no device: %s", fault.text);
    }
    const struct bhi_vk_api *api = &d->vk.api;
    d->map = (PFN_vkMapMemory)api->GetDeviceProcAddr(d->vk.device, "vkMapMemory");
    assert_non_null(d->map);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = d->vk.queue_family};
    OK(api->CreateCommandPool(d->vk.device, &pool, NULL, &d->pool));
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 64},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 64}};
    const VkDescriptorPoolCreateInfo descriptors = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
        .maxSets = 64,
        .poolSizeCount = 2,
        .pPoolSizes = sizes,
    };
    OK(api->CreateDescriptorPool(d->vk.device, &descriptors, NULL, &d->descriptors));
}

void runner_close(struct runner *d) {
    d->vk.api.DestroyDescriptorPool(d->vk.device, d->descriptors, NULL);
    d->vk.api.DestroyCommandPool(d->vk.device, d->pool, NULL);
    bhi_vk_device_fini(&d->vk);
}

static struct memory make_memory(struct runner *d, VkDeviceSize bytes) {
    const struct bhi_vk_api *api = &d->vk.api;
    struct memory m;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT};
    OK(api->CreateBuffer(d->vk.device, &info, NULL, &m.buffer));
    VkMemoryRequirements needs;
    api->GetBufferMemoryRequirements(d->vk.device, m.buffer, &needs);
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while ((needs.memoryTypeBits >> type & 1) == 0 ||
           (d->vk.memory.memoryTypes[type].propertyFlags & wanted) != wanted) {
        type++;
        assert_true(type < d->vk.memory.memoryTypeCount);
    }
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = type};
    OK(api->AllocateMemory(d->vk.device, &allocate, NULL, &m.memory));
    OK(api->BindBufferMemory(d->vk.device, m.buffer, m.memory, 0));
    void *mapped;
    OK(d->map(d->vk.device, m.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    m.mapped = mapped;
    return m;
}

static void free_memory(struct runner *d, struct memory *m) {
    d->vk.api.DestroyBuffer(d->vk.device, m->buffer, NULL);
    d->vk.api.FreeMemory(d->vk.device, m->memory, NULL); /* unmaps it */
}

struct objects {
    VkDescriptorSetLayout set_layouts[BHI_MAX_SETS];
    VkDescriptorSet sets[BHI_MAX_SETS];
    uint32_t set_count;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkShaderModule module;
};

static VkDescriptorType type_of(const struct bhi_reflected_binding *binding) {
    return binding->kind == BH_UNIFORM_BUFFER ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                              : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

static void make_layouts(struct runner *d, const struct runner_run *run, struct objects *o) {
    const struct bhi_vk_api *api = &d->vk.api;
    const struct bhi_reflection *r = run->reflection;
    o->set_count = r->set_count;
    if (run->guarded != NULL && run->guarded->set >= o->set_count) {
        o->set_count = run->guarded->set + 1;
    }
    for (uint32_t set = 0; set < o->set_count; set++) {
        VkDescriptorSetLayoutBinding bindings[BHI_MAX_BINDINGS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < r->binding_count; i++) {
            if (r->bindings[i].set == set) {
                bindings[count++] =
                    (VkDescriptorSetLayoutBinding){r->bindings[i].binding, type_of(&r->bindings[i]),
                                                   1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
            }
        }
        if (run->guarded != NULL && run->guarded->set == set) {
            assert_int_equal(count, 0); /* nobody else's */
            bindings[count++] = (VkDescriptorSetLayoutBinding){
                0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
        }
        const VkDescriptorSetLayoutCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = count,
            .pBindings = bindings};
        OK(api->CreateDescriptorSetLayout(d->vk.device, &info, NULL, &o->set_layouts[set]));
    }
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, r->push_bytes};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = o->set_count,
                                             .pSetLayouts = o->set_layouts,
                                             .pushConstantRangeCount = r->push_bytes > 0,
                                             .pPushConstantRanges = &push};
    OK(api->CreatePipelineLayout(d->vk.device, &info, NULL, &o->layout));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = d->descriptors,
        .descriptorSetCount = o->set_count,
        .pSetLayouts = o->set_layouts};
    if (o->set_count > 0) {
        OK(api->AllocateDescriptorSets(d->vk.device, &allocate, o->sets));
    }
}

static void make_pipeline(struct runner *d, const struct runner_run *run, struct objects *o) {
    const struct bhi_vk_api *api = &d->vk.api;
    VkSpecializationMapEntry entries[16];
    uint64_t values[16];
    assert_true(run->constant_count <= 16);
    for (uint32_t i = 0; i < run->constant_count; i++) {
        values[i] = run->constants[i].bits;
        entries[i] = (VkSpecializationMapEntry){run->constants[i].constant_id, i * 8,
                                                run->constants[i].size};
    }
    const VkSpecializationInfo special = {run->constant_count, entries, sizeof values, values};
    const uint32_t *code = run->guarded != NULL ? run->guarded->code : run->code;
    const VkShaderModuleCreateInfo module = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = (run->guarded != NULL ? run->guarded->words : run->words) * 4,
        .pCode = code};
    OK(api->CreateShaderModule(d->vk.device, &module, NULL, &o->module));
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = o->module,
                  .pName = "main",
                  .pSpecializationInfo = &special},
        .layout = o->layout};
    OK(api->CreateComputePipelines(d->vk.device, VK_NULL_HANDLE, 1, &info, NULL, &o->pipeline));
}

static void write_set(struct runner *d, VkDescriptorSet set, uint32_t binding,
                      VkDescriptorType type, const struct memory *memory, VkDeviceSize range) {
    const VkDescriptorBufferInfo buffer = {memory->buffer, 0, range};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = set,
                                        .dstBinding = binding,
                                        .descriptorCount = 1,
                                        .descriptorType = type,
                                        .pBufferInfo = &buffer};
    d->vk.api.UpdateDescriptorSets(d->vk.device, 1, &write, 0, NULL);
}

static void submit(struct runner *d, const struct runner_run *run, const struct objects *o) {
    const struct bhi_vk_api *api = &d->vk.api;
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = d->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    VkCommandBuffer commands;
    OK(api->AllocateCommandBuffers(d->vk.device, &allocate, &commands));
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    OK(api->BeginCommandBuffer(commands, &begin));
    api->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, o->pipeline);
    if (o->set_count > 0) {
        api->CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, o->layout, 0,
                                   o->set_count, o->sets, 0, NULL);
    }
    if (run->reflection->push_bytes > 0) {
        api->CmdPushConstants(commands, o->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              run->reflection->push_bytes, run->push);
    }
    api->CmdDispatch(commands, run->groups[0], run->groups[1], run->groups[2]);
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    api->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                            VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    OK(api->EndCommandBuffer(commands));
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    OK(api->QueueSubmit(d->vk.queue, 1, &info, VK_NULL_HANDLE));
    OK(api->DeviceWaitIdle(d->vk.device));
    api->FreeCommandBuffers(d->vk.device, d->pool, 1, &commands);
}

void runner_dispatch(struct runner *d, struct runner_run *run) {
    const struct bhi_vk_api *api = &d->vk.api;
    const struct bhi_reflection *r = run->reflection;
    struct objects o = {0};
    struct memory memory[8], words = make_memory(d, 256);
    assert_true(r->binding_count <= 8);
    make_layouts(d, run, &o);
    make_pipeline(d, run, &o);
    for (uint32_t i = 0; i < r->binding_count; i++) {
        memory[i] = make_memory(d, RUNNER_WORDS * 4);
        memcpy(memory[i].mapped, &run->data[i * RUNNER_WORDS], RUNNER_WORDS * 4);
        write_set(d, o.sets[r->bindings[i].set], r->bindings[i].binding, type_of(&r->bindings[i]),
                  &memory[i], RUNNER_WORDS * 4);
    }
    words.mapped[0] = run->abort;
    words.mapped[1] = 0;
    if (run->guarded != NULL) {
        write_set(d, o.sets[run->guarded->set], 0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, &words,
                  sizeof(struct bhi_guard_words));
    }
    submit(d, run, &o);
    run->flags = words.mapped[1];
    for (uint32_t i = 0; i < r->binding_count; i++) {
        memcpy(&run->data[i * RUNNER_WORDS], memory[i].mapped, RUNNER_WORDS * 4);
        free_memory(d, &memory[i]);
    }
    free_memory(d, &words);
    api->DestroyPipeline(d->vk.device, o.pipeline, NULL);
    api->DestroyShaderModule(d->vk.device, o.module, NULL);
    api->DestroyPipelineLayout(d->vk.device, o.layout, NULL);
    if (o.set_count > 0) {
        OK(api->FreeDescriptorSets(d->vk.device, d->descriptors, o.set_count, o.sets));
    }
    for (uint32_t set = 0; set < o.set_count; set++) {
        api->DestroyDescriptorSetLayout(d->vk.device, o.set_layouts[set], NULL);
    }
}
