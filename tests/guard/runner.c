#include "runner.h"

#include <bulkhead/bulkhead.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) BHT_EQ((call), VK_SUCCESS)

struct runner device;

static void open_device(void) {
    /* They stay mapped: a leak of theirs has a name then, which the suppressions know. */
    static const char *const names[] = {"libvulkan_lvp.so", "libVkLayer_MESA_device_select.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_NODELETE);
        if (library) {
            dlclose(library);
        }
    }
    const struct bhi_backend_config config = {.ops = &bhi_vulkan,
                                              .entry = (bhi_entry)vkGetInstanceProcAddr};
    struct bhi_error error;
    if (!bhi_vk_device_init(&device.vk, &config, &error)) {
        BHT_FAIL("no device: %s", bhi_error_line(&error));
    }
    const struct bhi_vk_api *api = &device.vk.api;
    device.map = (PFN_vkMapMemory)api->GetDeviceProcAddr(device.vk.device, "vkMapMemory");
    BHT_NE(device.map, NULL);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = device.vk.queue_family};
    OK(api->CreateCommandPool(device.vk.device, &pool, NULL, &device.pool));
}

static void close_device(void) {
    device.vk.api.DestroyCommandPool(device.vk.device, device.pool, NULL);
    bhi_vk_device_fini(&device.vk);
}

BHT_AT_START(bht_around(open_device, close_device))

static struct runner_memory make_memory(VkDeviceSize bytes) {
    const struct bhi_vk_api *api = &device.vk.api;
    struct runner_memory m;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT};
    OK(api->CreateBuffer(device.vk.device, &info, NULL, &m.buffer));
    VkMemoryRequirements needs;
    api->GetBufferMemoryRequirements(device.vk.device, m.buffer, &needs);
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while ((needs.memoryTypeBits >> type & 1) == 0 ||
           (device.vk.memory.memoryTypes[type].propertyFlags & wanted) != wanted) {
        type++;
        BHT_LT(type, device.vk.memory.memoryTypeCount);
    }
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = type};
    OK(api->AllocateMemory(device.vk.device, &allocate, NULL, &m.memory));
    OK(api->BindBufferMemory(device.vk.device, m.buffer, m.memory, 0));
    void *mapped;
    OK(device.map(device.vk.device, m.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    m.mapped = mapped;
    return m;
}

static void free_memory(struct runner_memory *m) {
    device.vk.api.DestroyBuffer(device.vk.device, m->buffer, NULL);
    device.vk.api.FreeMemory(device.vk.device, m->memory, NULL); /* unmaps it */
}

static VkDescriptorType type_of(const struct bhi_reflected_binding *binding) {
    return binding->kind == BH_BINDING_UNIFORM_BUFFER ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                                      : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

const struct bhi_module_bindings *runner_reflect(const struct runner_module *m) {
    static struct bhi_module_bindings reflection;
    struct bhi_error error;
    if (!bhi_reflect(m->plain->code, m->plain->words, "main", m->constants, m->constant_count,
                     &reflection, &error)) {
        BHT_FAIL("%s", bhi_error_line(&error));
    }
    return &reflection;
}

static void make_layouts(const struct runner_module *m, const struct bhi_module_bindings *r,
                         struct runner_kernel *k) {
    const struct bhi_vk_api *api = &device.vk.api;
    k->push_bytes = r->push_bytes;
    k->set_count = r->set_count;
    if (m->guarded && m->guarded->set >= k->set_count) {
        k->set_count = m->guarded->set + 1;
    }
    for (uint32_t set = 0; set < k->set_count; set++) {
        VkDescriptorSetLayoutBinding bindings[BHI_MAX_BINDINGS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < r->binding_count; i++) {
            if (r->bindings[i].set == set) {
                bindings[count++] =
                    (VkDescriptorSetLayoutBinding){r->bindings[i].binding, type_of(&r->bindings[i]),
                                                   1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
            }
        }
        if (m->guarded && m->guarded->set == set) {
            BHT_EQ(count, 0); /* nobody else's */
            bindings[count++] = (VkDescriptorSetLayoutBinding){
                0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
        }
        const VkDescriptorSetLayoutCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = count,
            .pBindings = bindings};
        OK(api->CreateDescriptorSetLayout(device.vk.device, &info, NULL, &k->set_layouts[set]));
    }
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, r->push_bytes};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = k->set_count,
                                             .pSetLayouts = k->set_layouts,
                                             .pushConstantRangeCount = r->push_bytes > 0,
                                             .pPushConstantRanges = &push};
    OK(api->CreatePipelineLayout(device.vk.device, &info, NULL, &k->layout));
}

static void make_sets(struct runner_kernel *k) {
    const struct bhi_vk_api *api = &device.vk.api;
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, RUNNER_BINDINGS + 1},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, RUNNER_BINDINGS}};
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = k->set_count,
        .poolSizeCount = 2,
        .pPoolSizes = sizes,
    };
    if (k->set_count == 0) {
        return;
    }
    OK(api->CreateDescriptorPool(device.vk.device, &pool, NULL, &k->descriptors));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = k->descriptors,
        .descriptorSetCount = k->set_count,
        .pSetLayouts = k->set_layouts};
    OK(api->AllocateDescriptorSets(device.vk.device, &allocate, k->sets));
}

static void make_pipeline(const struct runner_module *m, struct runner_kernel *k) {
    const struct bhi_vk_api *api = &device.vk.api;
    VkSpecializationMapEntry entries[16];
    uint64_t values[16];
    BHT_LE(m->constant_count, 16);
    for (uint32_t i = 0; i < m->constant_count; i++) {
        values[i] = m->constants[i].bits;
        entries[i] =
            (VkSpecializationMapEntry){m->constants[i].constant_id, i * 8, m->constants[i].size};
    }
    const VkSpecializationInfo special = {m->constant_count, entries, sizeof values, values};
    const uint32_t *code = m->guarded ? m->guarded->code : m->plain->code;
    const VkShaderModuleCreateInfo module = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = (m->guarded ? m->guarded->words : m->plain->words) * 4,
        .pCode = code};
    OK(api->CreateShaderModule(device.vk.device, &module, NULL, &k->module));
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = k->module,
                  .pName = "main",
                  .pSpecializationInfo = &special},
        .layout = k->layout};
    OK(api->CreateComputePipelines(device.vk.device, VK_NULL_HANDLE, 1, &info, NULL, &k->pipeline));
}

static void write_set(VkDescriptorSet set, uint32_t binding, VkDescriptorType type,
                      const struct runner_memory *memory, VkDeviceSize range) {
    const VkDescriptorBufferInfo buffer = {memory->buffer, 0, range};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = set,
                                        .dstBinding = binding,
                                        .descriptorCount = 1,
                                        .descriptorType = type,
                                        .pBufferInfo = &buffer};
    device.vk.api.UpdateDescriptorSets(device.vk.device, 1, &write, 0, NULL);
}

static void submit(const struct runner_kernel *k, const struct runner_run *run) {
    const struct bhi_vk_api *api = &device.vk.api;
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = device.pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    VkCommandBuffer commands;
    OK(api->AllocateCommandBuffers(device.vk.device, &allocate, &commands));
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    OK(api->BeginCommandBuffer(commands, &begin));
    api->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, k->pipeline);
    if (k->set_count > 0) {
        api->CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, k->layout, 0,
                                   k->set_count, k->sets, 0, NULL);
    }
    if (k->push_bytes > 0) {
        api->CmdPushConstants(commands, k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, k->push_bytes,
                              run->push);
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
    OK(api->QueueSubmit(device.vk.queue, 1, &info, VK_NULL_HANDLE));
    OK(api->DeviceWaitIdle(device.vk.device));
    api->FreeCommandBuffers(device.vk.device, device.pool, 1, &commands);
}

void runner_load(const struct runner_module *m, struct runner_kernel *k) {
    const struct bhi_module_bindings *r = runner_reflect(m);
    *k = (struct runner_kernel){0};
    BHT_LE(r->binding_count, RUNNER_BINDINGS);
    make_layouts(m, r, k);
    make_pipeline(m, k);
    make_sets(k);
    k->words = make_memory(256);
    for (uint32_t i = 0; i < r->binding_count; i++) {
        const struct bhi_reflected_binding *binding = &r->bindings[i];
        const bool is_words = m->sets_word && binding->set == 0 && binding->binding == 1;
        if (!is_words) {
            k->memory[k->buffers++] = make_memory(RUNNER_WORDS * 4);
        }
        write_set(k->sets[binding->set], binding->binding, type_of(binding),
                  is_words ? &k->words : &k->memory[k->buffers - 1],
                  is_words ? sizeof(struct bhi_guard_words) : RUNNER_WORDS * 4);
    }
    if (m->guarded) {
        write_set(k->sets[m->guarded->set], 0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, &k->words,
                  sizeof(struct bhi_guard_words));
    }
}

void runner_unload(struct runner_kernel *k) {
    const struct bhi_vk_api *api = &device.vk.api;
    for (uint32_t i = 0; i < k->buffers; i++) {
        free_memory(&k->memory[i]);
    }
    free_memory(&k->words);
    api->DestroyPipeline(device.vk.device, k->pipeline, NULL);
    api->DestroyShaderModule(device.vk.device, k->module, NULL);
    api->DestroyPipelineLayout(device.vk.device, k->layout, NULL);
    api->DestroyDescriptorPool(device.vk.device, k->descriptors, NULL);
    for (uint32_t set = 0; set < k->set_count; set++) {
        api->DestroyDescriptorSetLayout(device.vk.device, k->set_layouts[set], NULL);
    }
}

void runner_dispatch(struct runner_kernel *k, struct runner_run *run) {
    for (uint32_t i = 0; i < k->buffers; i++) {
        memcpy(k->memory[i].mapped, &run->data[i * RUNNER_WORDS], RUNNER_WORDS * 4);
    }
    struct bhi_guard_words words = {.abort = run->abort};
    memcpy(words.groups, run->told, sizeof words.groups);
    memcpy(k->words.mapped, &words, sizeof words);
    submit(k, run);
    memcpy(&words, k->words.mapped, sizeof words);
    run->flags = words.flags;
    for (uint32_t i = 0; i < k->buffers; i++) {
        memcpy(&run->data[i * RUNNER_WORDS], k->memory[i].mapped, RUNNER_WORDS * 4);
    }
}
