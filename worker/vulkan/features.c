#include "worker/vulkan/features.h"

#include "ipc/layers.h"
#include "worker/vulkan/memory.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t has; /* where in struct bhi_vk_features */
} extensions[] = {
#define HAS(name, member) {name, offsetof(struct bhi_vk_features, member)},
    HAS(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, has_host_import)
        HAS(VK_EXT_ROBUSTNESS_2_EXTENSION_NAME, has_robustness2)
            HAS(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, has_atomic_float)
                HAS(VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME, has_explicit_layout)
                    HAS(VK_EXT_DEVICE_FAULT_EXTENSION_NAME, has_fault)
                        HAS(VK_EXT_CONDITIONAL_RENDERING_EXTENSION_NAME, has_conditional)
                            HAS(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, has_memory_budget)
                                HAS(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, has_memory_fd)
#undef HAS
};
#define EXTENSIONS (sizeof extensions / sizeof *extensions)
_Static_assert(EXTENSIONS <= 8, "as many names fit");

/* Links the structs that the device has into features->base.pNext. */
static void chain(struct bhi_vk_features *f) {
    f->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    f->robustness2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT;
    f->atomic_float.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    f->explicit_layout.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR;
    f->error.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT;
    f->conditional.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT;

    f->base.pNext = &f->v11;
    f->v11.pNext = &f->v12;
    void **next = &f->v12.pNext;
    *next = NULL;
#define LINK(present, member)                                                                      \
    if (f->present) {                                                                              \
        *next = &f->member;                                                                        \
        f->member.pNext = NULL;                                                                    \
        next = &f->member.pNext;                                                                   \
    }
    LINK(has_v13, v13)
    LINK(has_robustness2, robustness2)
    LINK(has_atomic_float, atomic_float)
    LINK(has_explicit_layout, explicit_layout)
    LINK(has_fault, error)
    LINK(has_conditional, conditional)
#undef LINK
}

VkResult bhi_vk_features_query(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                               uint32_t api_version, struct bhi_vk_features *out) {
    memset(out, 0, sizeof *out);
    uint32_t count = 0;
    VkResult result = api->EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL);
    if (result != VK_SUCCESS) {
        return result;
    }
    VkExtensionProperties *list = calloc(count ? count : 1, sizeof *list);
    if (!list) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    result = api->EnumerateDeviceExtensionProperties(physical, NULL, &count, list);
    for (uint32_t i = 0; result >= 0 && i < count; i++) {
        for (size_t e = 0; e < EXTENSIONS; e++) {
            *(bool *)((char *)out + extensions[e].has) |=
                strcmp(list[i].extensionName, extensions[e].name) == 0;
        }
    }
    free(list);
    if (result < 0) {
        return result;
    }
    out->has_v13 = api_version >= VK_API_VERSION_1_3;
    if (api_version >= VK_API_VERSION_1_2) {
        chain(out);
        api->GetPhysicalDeviceFeatures2(physical, &out->base);
        out->has_memory_fd =
            out->has_memory_fd && bhi_vk_memory_shared(api, physical, BHI_VK_BUFFER_USAGE);
    }
    return VK_SUCCESS;
}

void bhi_vk_features_narrow(struct bhi_vk_features *f) {
    const struct bhi_vk_features had = *f;
    memset(&f->base, 0, sizeof f->base);
    memset(&f->v11, 0, sizeof f->v11);
    memset(&f->v12, 0, sizeof f->v12);
    memset(&f->v13, 0, sizeof f->v13);
    memset(&f->atomic_float, 0, sizeof f->atomic_float);
#define KEEP(member) f->member = had.member
    KEEP(base.features.robustBufferAccess);
    KEEP(base.features.shaderFloat64);
    KEEP(base.features.shaderInt64);
    KEEP(base.features.shaderInt16);
    KEEP(base.features.shaderStorageBufferArrayDynamicIndexing);
    KEEP(base.features.shaderUniformBufferArrayDynamicIndexing);
    KEEP(v11.storageBuffer16BitAccess);
    KEEP(v11.uniformAndStorageBuffer16BitAccess);
    KEEP(v11.storagePushConstant16);
    KEEP(v11.variablePointersStorageBuffer);
    KEEP(v11.variablePointers);
    KEEP(v12.storageBuffer8BitAccess);
    KEEP(v12.uniformAndStorageBuffer8BitAccess);
    KEEP(v12.storagePushConstant8);
    KEEP(v12.shaderBufferInt64Atomics);
    KEEP(v12.shaderSharedInt64Atomics);
    KEEP(v12.shaderFloat16);
    KEEP(v12.shaderInt8);
    KEEP(v12.shaderStorageBufferArrayNonUniformIndexing);
    KEEP(v12.shaderUniformBufferArrayNonUniformIndexing);
    KEEP(v12.uniformBufferStandardLayout);
    KEEP(v12.scalarBlockLayout);
    KEEP(v12.shaderSubgroupExtendedTypes);
    KEEP(v12.timelineSemaphore);
    KEEP(v12.hostQueryReset);
    KEEP(v12.vulkanMemoryModel);
    KEEP(v12.vulkanMemoryModelDeviceScope);
    KEEP(v13.maintenance4);
    KEEP(v13.shaderIntegerDotProduct);
    KEEP(v13.shaderZeroInitializeWorkgroupMemory);
    KEEP(v13.subgroupSizeControl);
    KEEP(v13.computeFullSubgroups);
    KEEP(atomic_float.shaderBufferFloat32Atomics);
    KEEP(atomic_float.shaderBufferFloat32AtomicAdd);
    KEEP(atomic_float.shaderBufferFloat64Atomics);
    KEEP(atomic_float.shaderBufferFloat64AtomicAdd);
    KEEP(atomic_float.shaderSharedFloat32Atomics);
    KEEP(atomic_float.shaderSharedFloat32AtomicAdd);
    KEEP(atomic_float.shaderSharedFloat64Atomics);
    KEEP(atomic_float.shaderSharedFloat64AtomicAdd);
#undef KEEP
    f->robustness2.robustImageAccess2 = VK_FALSE;
    if (!f->base.features.robustBufferAccess) {
        f->robustness2.robustBufferAccess2 = VK_FALSE; /* it requires robustBufferAccess */
    }
    f->error.deviceFaultVendorBinary = VK_FALSE;
    f->conditional.inheritedConditionalRendering = VK_FALSE;
    chain(f);
}

uint32_t bhi_vk_features_extensions(const struct bhi_vk_features *f, const char *out[8]) {
    uint32_t count = 0;
    for (size_t e = 0; e < EXTENSIONS; e++) {
        if (*(const bool *)((const char *)f + extensions[e].has)) {
            out[count++] = extensions[e].name;
        }
    }
    return count;
}

uint64_t bhi_vk_features_bits(const struct bhi_vk_features *f, VkSubgroupFeatureFlags subgroup,
                              const VkPhysicalDeviceMemoryProperties *memory) {
    bool local_visible = false;
    const VkMemoryPropertyFlags both =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        local_visible |= (memory->memoryTypes[i].propertyFlags & both) == both;
    }
    const VkPhysicalDeviceFeatures *base = &f->base.features;
    uint64_t bits = 0;
    const struct {
        bool has;
        uint64_t bit;
    } table[] = {
        {f->has_host_import, BHI_FEATURE_HOST_IMPORT},
        {base->robustBufferAccess, BHI_FEATURE_ROBUST_BUFFER},
        {f->robustness2.robustBufferAccess2, BHI_FEATURE_ROBUST_BUFFER_2},
        {f->robustness2.nullDescriptor, BHI_FEATURE_NULL_DESCRIPTOR},
        {f->v13.shaderZeroInitializeWorkgroupMemory, BHI_FEATURE_ZERO_WORKGROUP},
        {f->error.deviceFault, BHI_FEATURE_DEVICE_FAULT},
        {f->v12.timelineSemaphore, BHI_FEATURE_TIMELINE},
        {f->v12.shaderInt8, BHI_FEATURE_INT8},
        {base->shaderInt16, BHI_FEATURE_INT16},
        {base->shaderInt64, BHI_FEATURE_INT64},
        {f->v12.shaderFloat16, BHI_FEATURE_FLOAT16},
        {base->shaderFloat64, BHI_FEATURE_FLOAT64},
        {f->v12.storageBuffer8BitAccess, BHI_FEATURE_STORAGE_8},
        {f->v11.storageBuffer16BitAccess, BHI_FEATURE_STORAGE_16},
        {subgroup & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, BHI_FEATURE_SUBGROUP_ARITH},
        {local_visible, BHI_FEATURE_LOCAL_VISIBLE},
        {f->has_memory_budget, BHI_FEATURE_MEMORY_BUDGET},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bits |= table[i].has ? table[i].bit : 0;
    }
    return bits;
}

/* May an index into an array of buffers differ between invocations? */
static bool indexes_non_uniformly(const struct bhi_vk_features *f) {
    return f->v12.shaderStorageBufferArrayNonUniformIndexing ||
           f->v12.shaderUniformBufferArrayNonUniformIndexing;
}

size_t bhi_vk_features_capabilities(const struct bhi_vk_features *f,
                                    VkSubgroupFeatureFlags subgroup, SpvCapability *out,
                                    size_t capacity) {
    const VkPhysicalDeviceFeatures *base = &f->base.features;
    const VkPhysicalDeviceShaderAtomicFloatFeaturesEXT *atomic = &f->atomic_float;
    const bool dot = f->v13.shaderIntegerDotProduct;
    const bool explicit_layout = f->explicit_layout.workgroupMemoryExplicitLayout;
    const bool non_uniform = indexes_non_uniformly(f);
    const struct {
        bool has;
        SpvCapability capability;
    } table[] = {
        {true, SpvCapabilityShader},
        {true, SpvCapabilityMatrix},
        {true, SpvCapabilityDeviceGroup},
        {base->shaderInt64, SpvCapabilityInt64},
        {base->shaderInt16, SpvCapabilityInt16},
        {base->shaderFloat64, SpvCapabilityFloat64},
        {f->v12.shaderInt8, SpvCapabilityInt8},
        {f->v12.shaderFloat16, SpvCapabilityFloat16},
        {f->v12.shaderBufferInt64Atomics || f->v12.shaderSharedInt64Atomics,
         SpvCapabilityInt64Atomics},
        {f->v11.storageBuffer16BitAccess, SpvCapabilityStorageBuffer16BitAccess},
        {f->v11.uniformAndStorageBuffer16BitAccess,
         SpvCapabilityUniformAndStorageBuffer16BitAccess},
        {f->v11.storagePushConstant16, SpvCapabilityStoragePushConstant16},
        {f->v12.storageBuffer8BitAccess, SpvCapabilityStorageBuffer8BitAccess},
        {f->v12.uniformAndStorageBuffer8BitAccess, SpvCapabilityUniformAndStorageBuffer8BitAccess},
        {f->v12.storagePushConstant8, SpvCapabilityStoragePushConstant8},
        {f->v11.variablePointersStorageBuffer, SpvCapabilityVariablePointersStorageBuffer},
        {f->v11.variablePointers, SpvCapabilityVariablePointers},
        {base->shaderStorageBufferArrayDynamicIndexing,
         SpvCapabilityStorageBufferArrayDynamicIndexing},
        {base->shaderUniformBufferArrayDynamicIndexing,
         SpvCapabilityUniformBufferArrayDynamicIndexing},
        {non_uniform, SpvCapabilityShaderNonUniform},
        {f->v12.shaderStorageBufferArrayNonUniformIndexing,
         SpvCapabilityStorageBufferArrayNonUniformIndexing},
        {f->v12.shaderUniformBufferArrayNonUniformIndexing,
         SpvCapabilityUniformBufferArrayNonUniformIndexing},
        {f->v12.vulkanMemoryModel, SpvCapabilityVulkanMemoryModel},
        {f->v12.vulkanMemoryModelDeviceScope, SpvCapabilityVulkanMemoryModelDeviceScope},
        {subgroup & VK_SUBGROUP_FEATURE_BASIC_BIT, SpvCapabilityGroupNonUniform},
        {subgroup & VK_SUBGROUP_FEATURE_VOTE_BIT, SpvCapabilityGroupNonUniformVote},
        {subgroup & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, SpvCapabilityGroupNonUniformArithmetic},
        {subgroup & VK_SUBGROUP_FEATURE_BALLOT_BIT, SpvCapabilityGroupNonUniformBallot},
        {subgroup & VK_SUBGROUP_FEATURE_SHUFFLE_BIT, SpvCapabilityGroupNonUniformShuffle},
        {subgroup & VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT,
         SpvCapabilityGroupNonUniformShuffleRelative},
        {subgroup & VK_SUBGROUP_FEATURE_CLUSTERED_BIT, SpvCapabilityGroupNonUniformClustered},
        {subgroup & VK_SUBGROUP_FEATURE_QUAD_BIT, SpvCapabilityGroupNonUniformQuad},
        {dot, SpvCapabilityDotProduct},
        {dot, SpvCapabilityDotProductInputAll},
        {dot && f->v12.shaderInt8, SpvCapabilityDotProductInput4x8Bit},
        {dot, SpvCapabilityDotProductInput4x8BitPacked},
        {atomic->shaderBufferFloat32AtomicAdd || atomic->shaderSharedFloat32AtomicAdd,
         SpvCapabilityAtomicFloat32AddEXT},
        {atomic->shaderBufferFloat64AtomicAdd || atomic->shaderSharedFloat64AtomicAdd,
         SpvCapabilityAtomicFloat64AddEXT},
        {explicit_layout, SpvCapabilityWorkgroupMemoryExplicitLayoutKHR},
        {explicit_layout && f->explicit_layout.workgroupMemoryExplicitLayout8BitAccess,
         SpvCapabilityWorkgroupMemoryExplicitLayout8BitAccessKHR},
        {explicit_layout && f->explicit_layout.workgroupMemoryExplicitLayout16BitAccess,
         SpvCapabilityWorkgroupMemoryExplicitLayout16BitAccessKHR},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table && count < capacity; i++) {
        if (table[i].has) {
            out[count++] = table[i].capability;
        }
    }
    return count;
}

size_t bhi_vk_features_spirv_extensions(const struct bhi_vk_features *f, const char **out,
                                        size_t capacity) {
    const VkPhysicalDeviceShaderAtomicFloatFeaturesEXT *atomic = &f->atomic_float;
    const struct {
        bool has;
        const char *name;
    } table[] = {
        /* These are part of every device, or concern no device. */
        {true, "SPV_KHR_storage_buffer_storage_class"},
        {true, "SPV_KHR_device_group"},
        {true, "SPV_KHR_non_semantic_info"},
        {true, "SPV_KHR_relaxed_extended_instruction"},
        {true, "SPV_KHR_no_integer_wrap_decoration"},
        {true, "SPV_KHR_float_controls"}, /* validate.c decides on its capabilities */
        {true, "SPV_GOOGLE_decorate_string"},
        {true, "SPV_GOOGLE_hlsl_functionality1"},
        {true, "SPV_GOOGLE_user_type"},
        {f->v11.storageBuffer16BitAccess, "SPV_KHR_16bit_storage"},
        {f->v12.storageBuffer8BitAccess, "SPV_KHR_8bit_storage"},
        {f->v11.variablePointersStorageBuffer, "SPV_KHR_variable_pointers"},
        {f->v12.vulkanMemoryModel, "SPV_KHR_vulkan_memory_model"},
        {indexes_non_uniformly(f), "SPV_EXT_descriptor_indexing"},
        {f->v13.shaderIntegerDotProduct, "SPV_KHR_integer_dot_product"},
        {atomic->shaderBufferFloat32AtomicAdd || atomic->shaderSharedFloat32AtomicAdd ||
             atomic->shaderBufferFloat64AtomicAdd || atomic->shaderSharedFloat64AtomicAdd,
         "SPV_EXT_shader_atomic_float_add"},
        {f->explicit_layout.workgroupMemoryExplicitLayout,
         "SPV_KHR_workgroup_memory_explicit_layout"},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table && count < capacity; i++) {
        if (table[i].has) {
            out[count++] = table[i].name;
        }
    }
    return count;
}
