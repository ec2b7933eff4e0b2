#include "worker/vulkan/kernel.h"

#include "worker/error.h"
#include "worker/spirv/array_indices.h"
#include "worker/spirv/debug_info.h"
#include "worker/spirv/limits.h"
#include "worker/vulkan/result.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

struct bhi_vk_kernel *bhi_vk_kernel_new(const struct bhi_msg_kernel_create *info, const void *code,
                                        const struct bhi_spec_constant *constants,
                                        uint32_t constant_count) {
    struct bhi_vk_kernel *k = calloc(1, sizeof *k);
    if (!k) {
        return NULL;
    }
    k->id = info->kernel;
    bhi_list_init(&k->used);
    k->trusted = info->trusted;
    k->noise = info->noise;
    k->guard_set = BHI_NO_SET;
    memcpy(k->entry, info->entry, sizeof k->entry);
    memcpy(k->name, info->name, sizeof k->name);
    k->code = malloc(info->code_bytes);
    k->constants = calloc(constant_count ? constant_count : 1, sizeof *k->constants);
    if (!k->code || !k->constants) {
        k->state = BHI_KERNEL_FAILED;
        BHI_ERROR(&k->error, BH_REASON_HOST_MEMORY, NULL, .value = info->code_bytes,
                  .text = "a kernel");
        return k;
    }
    memcpy(k->code, code, info->code_bytes);
    k->words = info->code_bytes / sizeof(uint32_t);
    if (constant_count > 0) {
        memcpy(k->constants, constants, constant_count * sizeof *constants);
    }
    k->constant_count = constant_count;
    if (info->format != BHI_KERNEL_SPIRV) {
        k->state = BHI_KERNEL_FAILED;
        BHI_ERROR(&k->error, BH_REASON_NEEDS_CUDA, BHI_KERNEL_LABEL(k));
    } else if (k->words < 5) {
        k->state = BHI_KERNEL_FAILED;
        BHI_ERROR_SAY(&k->error, BH_REASON_NOT_VALID, "%llu bytes are less than a module's header",
                      (unsigned long long)info->code_bytes);
    } else if (info->code_bytes % sizeof(uint32_t) != 0) {
        k->state = BHI_KERNEL_FAILED;
        BHI_ERROR_SAY(&k->error, BH_REASON_NOT_VALID, "%llu bytes are not a whole number of words",
                      (unsigned long long)info->code_bytes);
    }
    return k;
}

void bhi_vk_kernel_touch(struct bhi_vk_kernels *kernels, struct bhi_vk_kernel *k, uint64_t run) {
    bhi_list_remove(&k->used);
    bhi_list_append(&kernels->used, &k->used);
    k->last_run = run;
}

struct bhi_vk_kernel *bhi_vk_kernel_victim(const struct bhi_vk_kernels *kernels, uint64_t run) {
    if (kernels->pipelines <= kernels->max_pipelines || bhi_list_empty(&kernels->used)) {
        return NULL;
    }
    struct bhi_vk_kernel *k = BHI_CONTAINER(kernels->used.next, struct bhi_vk_kernel, used);
    return k->last_run != run ? k : NULL;
}

void bhi_vk_kernel_evict(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                         struct bhi_vk_kernel *k) {
    bhi_list_remove(&k->used);
    kernels->pipelines--;
    device->api.DestroyPipeline(device->device, k->pipeline, NULL);
    device->api.DestroyPipeline(device->device, k->split, NULL);
    k->pipeline = k->split = VK_NULL_HANDLE;
    k->has_run = false;
    k->state = BHI_KERNEL_REFLECTED;
}

static void destroy_layouts(struct bhi_vk_device *device, struct bhi_vk_kernel *k) {
    device->api.DestroyPipelineLayout(device->device, k->layout, NULL);
    k->layout = VK_NULL_HANDLE;
    for (uint32_t set = 0; set < BHI_MAX_SETS; set++) {
        device->api.DestroyDescriptorSetLayout(device->device, k->set_layouts[set], NULL);
        k->set_layouts[set] = VK_NULL_HANDLE;
    }
}

void bhi_vk_kernel_free(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                        struct bhi_vk_kernel *k) {
    if (k->state == BHI_KERNEL_READY) {
        bhi_vk_kernel_evict(device, kernels, k);
    }
    for (struct bhi_vk_kernel **at = &kernels->reflected_first, *last = NULL; *at;
         last = *at, at = &(*at)->next_reflected) {
        if (*at == k) {
            *at = k->next_reflected;
            if (kernels->reflected_last == k) {
                kernels->reflected_last = last;
            }
            break;
        }
    }
    destroy_layouts(device, k);
    free(k->reflection);
    free(k->code);
    free(k->constants);
    free(k);
}

static bool over_limit(struct bhi_error *error, uint64_t value, uint64_t limit, const char *what,
                       const char *limit_name) {
    if (value <= limit) {
        return false;
    }
    BHI_ERROR(error, BH_REASON_DEVICE_LIMIT, what, .value = value, .limit = limit,
              .text = limit_name);
    return true;
}

/* |guard| is the number of storage buffers that the guard adds. */
static bool fits_device(const struct bhi_vk_device *device, const struct bhi_module_bindings *r,
                        uint32_t guard, struct bhi_error *error) {
    static const char *const axes[3] = {"workgroup size in x", "workgroup size in y",
                                        "workgroup size in z"};
    const VkPhysicalDeviceLimits *limits = &device->limits;
    uint32_t storage = 0, uniform = 0;
    for (uint32_t i = 0; i < r->binding_count; i++) {
        *(r->bindings[i].kind == BH_BINDING_STORAGE_BUFFER ? &storage : &uniform) +=
            r->bindings[i].count;
    }
    for (int axis = 0; axis < 3; axis++) {
        if (over_limit(error, r->local_size[axis], limits->maxComputeWorkGroupSize[axis],
                       axes[axis], "maxComputeWorkGroupSize")) {
            return false;
        }
    }
    const uint64_t invocations = (uint64_t)r->local_size[0] * r->local_size[1] * r->local_size[2];
    return !over_limit(error, invocations, limits->maxComputeWorkGroupInvocations,
                       "invocations in a workgroup", "maxComputeWorkGroupInvocations") &&
           !over_limit(error, r->shared_bytes, limits->maxComputeSharedMemorySize,
                       "bytes of shared memory", "maxComputeSharedMemorySize") &&
           !over_limit(error, r->push_bytes, limits->maxPushConstantsSize,
                       "bytes of push constants", "maxPushConstantsSize") &&
           !over_limit(error, r->set_count, limits->maxBoundDescriptorSets, "descriptor sets",
                       "maxBoundDescriptorSets") &&
           !over_limit(error, storage, limits->maxPerStageDescriptorStorageBuffers - guard,
                       "storage buffers",
                       guard ? "maxPerStageDescriptorStorageBuffers, less one for the guard"
                             : "maxPerStageDescriptorStorageBuffers") &&
           !over_limit(error, uniform, limits->maxPerStageDescriptorUniformBuffers,
                       "uniform buffers", "maxPerStageDescriptorUniformBuffers");
}

/* Checks the workgroup memory, with what the guard needs itself. */
static bool fits_shared(const struct bhi_vk_device *device, const struct bhi_module_bindings *r,
                        const struct bhi_guarded *guarded, struct bhi_error *error) {
    const uint32_t most = device->limits.maxComputeSharedMemorySize;
    return guarded->shared_bytes == 0 ||
           !over_limit(error, r->shared_bytes + guarded->shared_bytes, most,
                       "bytes of shared memory, with the guard's", "maxComputeSharedMemorySize");
}

/* Makes the layout: the kernel's own sets, the guard's, and empty sets between them. */
static VkResult create_layout(struct bhi_vk_device *device, const struct bhi_vk_abort *abort,
                              struct bhi_vk_kernel *k) {
    const struct bhi_module_bindings *r = k->reflection;
    VkDescriptorSetLayout sets[BHI_MAX_SETS];
    uint32_t count = r->set_count;
    memcpy(sets, k->set_layouts, count * sizeof *sets);
    if (k->guard_set != BHI_NO_SET && !k->guard_shares_set) {
        for (; count <= k->guard_set; count++) {
            sets[count] = abort->empty;
        }
        sets[k->guard_set] = abort->layout;
    }
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                      .size = r->push_bytes};
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = count,
        .pSetLayouts = sets,
        .pushConstantRangeCount = r->push_bytes > 0,
        .pPushConstantRanges = &push,
    };
    VkResult result = device->api.CreatePipelineLayout(device->device, &info, NULL, &k->layout);
    if (result != VK_SUCCESS) {
        k->layout = VK_NULL_HANDLE;
    }
    return result;
}

static VkResult create_layouts(struct bhi_vk_device *device, const struct bhi_vk_abort *abort,
                               struct bhi_vk_kernel *k) {
    const struct bhi_module_bindings *r = k->reflection;
    uint32_t next = 0;
    for (uint32_t set = 0; set < r->set_count; set++) {
        VkDescriptorSetLayoutBinding bindings[BHI_MAX_BINDINGS + 1];
        uint32_t count = 0;
        for (; next < r->binding_count && r->bindings[next].set == set; next++) {
            bindings[count++] = (VkDescriptorSetLayoutBinding){
                .binding = r->bindings[next].binding,
                .descriptorType = r->bindings[next].kind == BH_BINDING_UNIFORM_BUFFER
                                      ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                      : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                .descriptorCount = r->bindings[next].count,
                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
            };
        }
        if (k->guard_shares_set && set == k->guard_set) {
            bindings[count++] = bhi_vk_abort_binding(k->guard_binding);
        }
        const VkDescriptorSetLayoutCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = count,
            .pBindings = bindings,
        };
        VkResult result = device->api.CreateDescriptorSetLayout(device->device, &info, NULL,
                                                                &k->set_layouts[set]);
        if (result != VK_SUCCESS) {
            k->set_layouts[set] = VK_NULL_HANDLE;
            return result;
        }
    }
    return create_layout(device, abort, k);
}

/* Makes the guarded module of a kernel that is not trusted. */
static bool guard(const struct bhi_vk_device *device, const struct bhi_vk_kernel *k,
                  struct bhi_guarded *out, struct bhi_error *error) {
    const uint32_t sets = device->limits.maxBoundDescriptorSets;
    const struct bhi_guard_options options = {
        .entry = k->entry,
        .constants = k->constants,
        .constant_count = k->constant_count,
        .max_sets = sets < BHI_MAX_SETS ? sets : BHI_MAX_SETS,
        .zero_initialize = device->enabled.v13.shaderZeroInitializeWorkgroupMemory,
        .count_iterations = !device->whole_loops,
        .in_parts = device->in_parts,
        .noise = k->noise,
    };
    if (!bhi_guard(k->code, k->words, &options, out, error)) {
        return false;
    }
    if (bhi_validate(&device->target, out->code, out->words, k->entry, error)) {
        return true;
    }
    bhi_guarded_fini(out);
    return false;
}

static bool check_indices(const struct bhi_vk_device *device, const struct bhi_vk_kernel *k,
                          struct bhi_error *error) {
    const VkPhysicalDeviceFeatures *base = &device->enabled.base.features;
    const VkPhysicalDeviceVulkan12Features *v12 = &device->enabled.v12;
    const struct bhi_array_rules rules = {
        .storage = base->shaderStorageBufferArrayDynamicIndexing,
        .uniform = base->shaderUniformBufferArrayDynamicIndexing,
        .storage_varies = v12->shaderStorageBufferArrayNonUniformIndexing,
        .uniform_varies = v12->shaderUniformBufferArrayNonUniformIndexing,
        .one_element = !device->own_elements,
        .first_lane = device->is_cpu,
    };
    struct bhi_module module;
    const bool good = bhi_module_init(&module, k->code, k->words, k->entry, k->constants,
                                      k->constant_count, error) &&
                      bhi_array_indices_check(&module, &rules, error);
    bhi_module_fini(&module);
    return good;
}

static bool reflect(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                    struct bhi_vk_kernel *k, struct bhi_error *error) {
    k->words = bhi_debug_info_normalise(k->code, k->words);
    /* The limits come first, because the validator and the reflection recurse. */
    if ((!k->trusted && !bhi_guard_limits(k->code, k->words, error)) ||
        !bhi_validate(&device->target, k->code, k->words, k->entry, error) ||
        (!k->trusted && !bhi_guard_limits_sizes(k->code, k->words, k->entry, k->constants,
                                                k->constant_count, error))) {
        return false;
    }
    struct bhi_module_bindings *r = malloc(sizeof *r);
    if (!r) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a reflection");
        return false;
    }
    struct bhi_guarded guarded = {.set = BHI_NO_SET};
    if (!bhi_reflect(k->code, k->words, k->entry, k->constants, k->constant_count, r, error) ||
        !fits_device(device, r, !k->trusted, error) || !check_indices(device, k, error) ||
        (!k->trusted && !guard(device, k, &guarded, error)) ||
        !fits_shared(device, r, &guarded, error)) {
        bhi_guarded_fini(&guarded);
        free(r);
        return false;
    }
    k->reflection = r;
    k->guard_set = guarded.set;
    k->guard_binding = guarded.binding;
    k->guard_shares_set = guarded.shares_set;
    VkResult result = create_layouts(device, kernels->abort, k);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "layouts of the kernel");
        destroy_layouts(device, k);
        bhi_guarded_fini(&guarded);
        k->reflection = NULL;
        free(r);
        return false;
    }
    k->in_parts = device->in_parts && !k->trusted && !guarded.whole_grid;
    k->reads_grid = guarded.reads_grid;
    k->grid_constant = guarded.grid_constant;
    if (!k->trusted) { /* the original code is no longer needed */
        free(k->code);
        k->code = guarded.code;
        k->words = guarded.words;
    }
    k->next_reflected = NULL;
    *(kernels->reflected_last ? &kernels->reflected_last->next_reflected
                              : &kernels->reflected_first) = k;
    kernels->reflected_last = k;
    return true;
}

/* |split|: compiles for grids in parts, for a kernel that reads the number of workgroups. */
static bool compile(struct bhi_vk_device *device, struct bhi_vk_cache *cache,
                    struct bhi_vk_kernel *k, bool split, struct bhi_error *error) {
    VkPipeline *out = split ? &k->split : &k->pipeline;
    VkSpecializationMapEntry entries[257];
    uint64_t data[257];
    uint32_t count = k->constant_count < 256 ? k->constant_count : 256;
    for (uint32_t i = 0; i < count; i++) {
        data[i] = k->constants[i].bits;
        entries[i] = (VkSpecializationMapEntry){.constantID = k->constants[i].constant_id,
                                                .offset = i * (uint32_t)sizeof *data,
                                                .size = k->constants[i].size};
    }
    if (split) {
        data[count] = VK_TRUE;
        entries[count] = (VkSpecializationMapEntry){.constantID = k->grid_constant,
                                                    .offset = count * (uint32_t)sizeof *data,
                                                    .size = sizeof(VkBool32)};
        count++;
    }
    const VkSpecializationInfo specialization = {.mapEntryCount = count,
                                                 .pMapEntries = entries,
                                                 .dataSize = count * sizeof *data,
                                                 .pData = data};
    const VkShaderModuleCreateInfo module = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = k->words * sizeof(uint32_t),
        .pCode = k->code,
    };
    VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = k->entry,
                  .pSpecializationInfo = count > 0 ? &specialization : NULL},
        .layout = k->layout,
        .flags = k->in_parts && split == k->reads_grid ? VK_PIPELINE_CREATE_DISPATCH_BASE_BIT : 0,
    };
    VkResult result =
        device->api.CreateShaderModule(device->device, &module, NULL, &pipeline.stage.module);
    const char *call = "vkCreateShaderModule";
    if (result == VK_SUCCESS) {
        call = "vkCreateComputePipelines";
        result = device->api.CreateComputePipelines(device->device, cache->cache, 1, &pipeline,
                                                    NULL, out);
        device->api.DestroyShaderModule(device->device, pipeline.stage.module, NULL);
        cache->changed |= result == VK_SUCCESS;
    }
    if (result != VK_SUCCESS) {
        *out = VK_NULL_HANDLE;
        bhi_error_vk(error, result, call);
        if (error->status == BH_VULKAN) {
            error->status = BH_COMPILE_FAILED;
        }
        return false;
    }
    return true;
}

bool bhi_vk_kernel_prepare(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                           struct bhi_vk_kernel *k, struct bhi_error *error) {
    if (k->state == BHI_KERNEL_FAILED) {
        *error = k->error;
        return false;
    }
    bool ok = k->state != BHI_KERNEL_NEW;
    if (!ok && (ok = reflect(device, kernels, k, error))) {
        k->state = BHI_KERNEL_REFLECTED;
    }
    if (ok && k->state == BHI_KERNEL_REFLECTED &&
        (ok = compile(device, kernels->cache, k, false, error))) {
        k->state = BHI_KERNEL_READY;
        kernels->pipelines++;
        bhi_list_append(&kernels->used, &k->used);
    }
    if (!ok && (error->status == BH_INVALID_KERNEL || error->status == BH_COMPILE_FAILED ||
                error->status == BH_LIMIT_EXCEEDED)) {
        k->state = BHI_KERNEL_FAILED;
        k->error = *error;
    }
    return ok;
}

bool bhi_vk_kernel_prepare_split(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                                 struct bhi_vk_kernel *k, struct bhi_error *error) {
    return k->split != VK_NULL_HANDLE || compile(device, kernels->cache, k, true, error);
}
