/* Device features: which ones are asked for, which of them compute kernels can use, and their
 * translation into BHI_FEATURE_* bits and into the capabilities that kernels may declare. */
#ifndef BHI_WORKER_VULKAN_FEATURES_H
#define BHI_WORKER_VULKAN_FEATURES_H

#include "worker/vulkan/api.h"
#include <spirv/unified1/spirv.h>
#include <stddef.h>
#include <stdint.h>

/* The usage of every buffer that commands use. */
#define BHI_VK_BUFFER_USAGE                                                                        \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |                     \
     VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

/* The features of a physical device, or (in struct bhi_vk_device) those that are enabled. */
struct bhi_vk_features {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDeviceRobustness2FeaturesEXT robustness2;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR explicit_layout;
    VkPhysicalDeviceFaultFeaturesEXT error;
    VkPhysicalDeviceConditionalRenderingFeaturesEXT conditional;
    /* Extensions that belong to the structs above, and others that we use. */
    bool has_v13, has_robustness2, has_atomic_float, has_explicit_layout, has_fault,
        has_conditional;
    bool has_host_import, has_memory_budget, has_memory_fd;
};

/* Asks |physical| for extensions and features. */
VkResult bhi_vk_features_query(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                               uint32_t api_version, struct bhi_vk_features *out);
/* Clears all features that compute kernels do not use. The others are to be enabled. */
void bhi_vk_features_narrow(struct bhi_vk_features *features);
/* Writes the names of the device extensions to enable with |features|. Returns how many (at most
 * 8). */
uint32_t bhi_vk_features_extensions(const struct bhi_vk_features *features, const char *out[8]);
/* Returns the BHI_FEATURE_* bits. */
uint64_t bhi_vk_features_bits(const struct bhi_vk_features *features,
                              VkSubgroupFeatureFlags subgroup_operations,
                              const VkPhysicalDeviceMemoryProperties *memory);
/* Writes the capabilities that kernels may declare. Returns how many. */
size_t bhi_vk_features_capabilities(const struct bhi_vk_features *features,
                                    VkSubgroupFeatureFlags subgroup_operations, SpvCapability *out,
                                    size_t capacity);
/* Writes the SPIR-V extensions that kernels may use. Returns how many. The names are constants. */
size_t bhi_vk_features_spirv_extensions(const struct bhi_vk_features *features, const char **out,
                                        size_t capacity);

#endif
