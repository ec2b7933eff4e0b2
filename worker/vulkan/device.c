#include "worker/vulkan/device.h"

#include "base/format.h"
#include "ipc/layers.h"
#include "worker/error.h"
#include "worker/vulkan/memory.h"
#include "worker/vulkan/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns false. */
static bool is_too_old(const char *what, uint32_t version, struct bhi_error *error) {
    BHI_ERROR(error, BH_REASON_DEVICE_LACKS, what);
    bhi_format(error->told.text, sizeof error->told.text,
               "Vulkan 1.2 or later, which Bulkhead needs: it has %u.%u",
               VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    return false;
}

bool bhi_vk_instance_create(struct bhi_vk_api *api, const struct bhi_backend_config *config,
                            VkInstance *out_instance, struct bhi_error *error) {
    PFN_vkGetInstanceProcAddr entry = (PFN_vkGetInstanceProcAddr)config->entry;
    const char *missing = bhi_vk_api_global(api, entry);
    if (missing) {
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, "the Vulkan driver", .text = missing);
        return false;
    }
    uint32_t version = VK_API_VERSION_1_0;
    if (api->EnumerateInstanceVersion) {
        (void)api->EnumerateInstanceVersion(&version);
    }
    if (version < VK_API_VERSION_1_2) {
        return is_too_old("the driver", version, error);
    }
    uint32_t layers = 0;
    while (config->layers && config->layers[layers]) {
        layers++;
    }
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "bulkhead",
        .pEngineName = "bulkhead",
        .apiVersion = version < VK_API_VERSION_1_3 ? VK_API_VERSION_1_2 : VK_API_VERSION_1_3,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .enabledLayerCount = layers,
        .ppEnabledLayerNames = config->layers,
    };
    VkResult result = api->CreateInstance(&info, NULL, out_instance);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkCreateInstance");
        return false;
    }
    missing = bhi_vk_api_instance(api, entry, *out_instance);
    if (missing) {
        PFN_vkDestroyInstance destroy =
            (PFN_vkDestroyInstance)entry(*out_instance, "vkDestroyInstance");
        if (destroy) {
            destroy(*out_instance, NULL);
        }
        *out_instance = VK_NULL_HANDLE;
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, "the Vulkan driver", .text = missing);
        return false;
    }
    return true;
}

/* Lists physical devices, at most BHI_VK_MAX_DEVICES. */
static VkResult list_devices(const struct bhi_vk_api *api, VkInstance instance,
                             VkPhysicalDevice out[BHI_VK_MAX_DEVICES], uint32_t *out_count) {
    *out_count = BHI_VK_MAX_DEVICES;
    VkResult result = api->EnumeratePhysicalDevices(instance, out_count, out);
    if (result < 0) {
        *out_count = 0;
    }
    return result;
}

static bool tells_address(const struct bhi_vk_api *api, VkPhysicalDevice physical) {
    uint32_t count = 0;
    if (api->EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL) < 0) {
        return false;
    }
    VkExtensionProperties *list = calloc(count + 1, sizeof *list);
    bool found = false;
    if (list && api->EnumerateDeviceExtensionProperties(physical, NULL, &count, list) >= 0) {
        for (uint32_t i = 0; i < count; i++) {
            found |= strcmp(list[i].extensionName, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME) == 0;
        }
    }
    free(list);
    return found;
}

static struct bhi_pci address_of(const struct bhi_vk_api *api, VkPhysicalDevice physical) {
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &pci};
    api->GetPhysicalDeviceProperties(physical, &properties.properties);
    if (properties.properties.apiVersion < VK_API_VERSION_1_1 || !tells_address(api, physical)) {
        return (struct bhi_pci){.known = false};
    }
    api->GetPhysicalDeviceProperties2(physical, &properties);
    return (struct bhi_pci){.domain = pci.pciDomain,
                            .bus = pci.pciBus,
                            .device = pci.pciDevice,
                            .function = pci.pciFunction,
                            .known = true};
}

size_t bhi_vk_device_addresses(const struct bhi_vk_api *api, VkInstance instance,
                               struct bhi_pci *out, size_t capacity) {
    VkPhysicalDevice list[BHI_VK_MAX_DEVICES];
    uint32_t count;
    (void)list_devices(api, instance, list, &count);
    size_t written = 0;
    for (uint32_t i = 0; i < count && written < capacity; i++) {
        out[written++] = address_of(api, list[i]);
    }
    return written;
}

/* Returns the index in |list| of the wanted device; |count| if it is missing. */
static uint32_t find_wanted(const struct bhi_vk_api *api, const VkPhysicalDevice *list,
                            uint32_t count, const struct bhi_pci *pci) {
    for (uint32_t i = 0; i < count; i++) {
        const struct bhi_pci there = address_of(api, list[i]);
        if (bhi_pci_equal(&there, pci)) {
            return i;
        }
    }
    return count;
}

static VkSubgroupFeatureFlags
compute_subgroup_operations(const VkPhysicalDeviceSubgroupProperties *subgroup) {
    bool in_compute = subgroup->supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
    return in_compute ? subgroup->supportedOperations : 0;
}

/* llvmpipe before Mesa 25 silently ends every loop of a group of invocations after 65,535
 * iterations in all. A llvmpipe that does not tell its version counts as an old one. */
static bool runs_whole_loops(const VkPhysicalDeviceDriverProperties *driver) {
    unsigned major = 0;
    return driver->driverID != VK_DRIVER_ID_MESA_LLVMPIPE ||
           (sscanf(driver->driverInfo, "Mesa %u.", &major) == 1 && major >= 25);
}

/* llvmpipe multiplies the three counts in 32 bits and runs only the truncated number. A driver is
 * added to this list after tests/system/grid.c has passed on it. */
static bool runs_whole_grids(const VkPhysicalDeviceDriverProperties *driver) {
    return driver->driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

/* If an index into an array of storage buffers differs between invocations and is not NonUniform,
 * SwiftShader uses the first invocation's index for all. A driver for processors is added to this
 * list after tests/backend/arrays_test.c has passed on it. */
static bool takes_own_elements(const VkPhysicalDeviceDriverProperties *driver) {
    return driver->driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
}

static bool pick_queue_family(struct bhi_vk_device *d, struct bhi_error *error) {
    VkQueueFamilyProperties families[32];
    uint32_t count = 32;
    d->api.GetPhysicalDeviceQueueFamilyProperties(d->physical, &count, families);
    d->transfer_family =
        bhi_vk_transfer_family(&d->api, d->physical, d->enabled.has_memory_fd, d->whole_loops);
    d->enabled.has_memory_fd &= d->transfer_family != UINT32_MAX || d->exports;
    d->transfer_queues = d->transfer_family < count ? families[d->transfer_family].queueCount : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (families[i].queueCount > 0 && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) {
            d->queue_family = i;
            d->timestamp_bits = families[i].timestampValidBits;
            return true;
        }
    }
    BHI_ERROR(error, BH_REASON_DEVICE_LACKS, "the device", .text = "compute queue");
    return false;
}

static bool create_device(struct bhi_vk_device *d, bool computes, struct bhi_error *error) {
    const char *extensions[8];
    const float priorities[2] = {1.0f, 1.0f};
    const bool copies = computes && d->transfer_queues > 1;
    const uint32_t families[2] = {computes ? d->queue_family : d->transfer_family,
                                  d->transfer_family};
    VkDeviceQueueCreateInfo queues[2];
    for (size_t i = 0; i < 2; i++) {
        queues[i] = (VkDeviceQueueCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
            .queueFamilyIndex = families[i],
            .queueCount = i == 1 && copies ? 2 : 1,
            .pQueuePriorities = priorities,
        };
    }
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &d->enabled.base,
        .queueCreateInfoCount = computes && d->transfer_family != UINT32_MAX ? 2 : 1,
        .pQueueCreateInfos = queues,
        .enabledExtensionCount = bhi_vk_features_extensions(&d->enabled, extensions),
        .ppEnabledExtensionNames = extensions,
    };
    VkResult result = d->api.CreateDevice(d->physical, &info, NULL, &d->device);
    if (result != VK_SUCCESS) {
        d->device = VK_NULL_HANDLE;
        bhi_error_vk(error, result, "vkCreateDevice");
        return false;
    }
    const char *missing = bhi_vk_api_device(&d->api, d->device);
    if (missing) {
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, "the Vulkan driver", .text = missing);
        return false;
    }
    d->in_parts = d->enabled.has_conditional && d->enabled.conditional.conditionalRendering &&
                  d->api.CmdBeginConditionalRenderingEXT && d->api.CmdEndConditionalRenderingEXT;
    d->exports = d->exports && d->api.GetMemoryFdKHR;
    if (!d->enabled.error.deviceFault) {
        d->api.GetDeviceFaultInfoEXT = NULL;
    }
    d->api.GetDeviceQueue(d->device, families[0], 0, &d->queue);
    if (copies) {
        d->api.GetDeviceQueue(d->device, d->transfer_family, 1, &d->copy_queue);
    }
    return true;
}

static uint8_t widths(VkBool32 half, VkBool32 single, VkBool32 twice) {
    return (uint8_t)((half ? 16 : 0) | (single ? 32 : 0) | (twice ? 64 : 0));
}

static enum bhi_float_independence independence(VkShaderFloatControlsIndependence from) {
    switch (from) {
    case VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL:
        return BHI_FLOAT_ALL;
    case VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY:
        return BHI_FLOAT_32_ONLY;
    default:
        return BHI_FLOAT_NONE;
    }
}

static struct bhi_float_modes float_modes(const VkPhysicalDeviceFloatControlsProperties *p) {
#define WIDTHS(mode)                                                                               \
    widths(p->shader##mode##Float16, p->shader##mode##Float32, p->shader##mode##Float64)
    return (struct bhi_float_modes){
        .widths = {WIDTHS(DenormPreserve), WIDTHS(DenormFlushToZero),
                   WIDTHS(SignedZeroInfNanPreserve), WIDTHS(RoundingModeRTE),
                   WIDTHS(RoundingModeRTZ)},
        .denorms = independence(p->denormBehaviorIndependence),
        .rounding = independence(p->roundingModeIndependence),
    };
#undef WIDTHS
}

static bool open_physical(struct bhi_vk_device *d, const struct bhi_backend_config *config,
                          struct bhi_error *error) {
    VkPhysicalDevice list[BHI_VK_MAX_DEVICES];
    uint32_t count;
    VkResult result = list_devices(&d->api, d->instance, list, &count);
    if (result < 0) { /* having no devices is another case, which is not tried again */
        bhi_error_vk(error, result, "vkEnumeratePhysicalDevices");
        return false;
    }
    const struct bhi_pci *pci = config->pci;
    uint32_t index = config->device_index;
    if (pci && (index = find_wanted(&d->api, list, count, pci)) == count) {
        BHI_ERROR_SAY(error, BH_REASON_DEVICE_GONE, "at %04x:%02x:%02x.%x any more", pci->domain,
                      pci->bus, pci->device, pci->function);
        return false;
    }
    if (index >= count) {
        BHI_ERROR_SAY(error, BH_REASON_DEVICE_GONE, "number %u: it has %u", index, count);
        return false;
    }
    d->physical = list[index];
    VkPhysicalDeviceProperties basic;
    d->api.GetPhysicalDeviceProperties(d->physical, &basic);
    if (basic.apiVersion < VK_API_VERSION_1_2) {
        return is_too_old(basic.deviceName, basic.apiVersion, error);
    }
    d->api_version =
        basic.apiVersion < VK_API_VERSION_1_3 ? VK_API_VERSION_1_2 : VK_API_VERSION_1_3;
    result = bhi_vk_features_query(&d->api, d->physical, d->api_version, &d->enabled);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkEnumerateDeviceExtensionProperties");
        return false;
    }
    if (!d->enabled.has_host_import) {
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, basic.deviceName,
                  .text = "VK_EXT_external_memory_host");
        return false;
    }
    /* Large grids are not dispatched in parts on a GPU: it starts and ends workgroups fast enough,
     * and conditional rendering would be one more part of the driver to trust. */
    d->enabled.has_conditional &= basic.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    bhi_vk_features_narrow(&d->enabled);

    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
        .pNext = &subgroup};
    VkPhysicalDeviceFloatControlsProperties floats = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, .pNext = &host};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, .pNext = &floats};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    d->api.GetPhysicalDeviceProperties2(d->physical, &properties);
    d->api.GetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
    d->limits = properties.properties.limits;
    d->target.floats = float_modes(&floats);
    d->import_alignment = host.minImportedHostPointerAlignment;
    /* A GPU's driver pins memory for writing. After NVIDIA's has refused a read-only mapping, it
     * refuses every import. So this is not tried. */
    d->is_cpu = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    d->exports = d->enabled.has_memory_fd && !d->is_cpu;
    d->imports_read_only = d->is_cpu;
    d->own_elements = !d->is_cpu || takes_own_elements(&driver);
    d->whole_loops = runs_whole_loops(&driver);
    d->whole_grids = runs_whole_grids(&driver);
    d->subgroup_operations = compute_subgroup_operations(&subgroup);
    if (d->import_alignment > (VkDeviceSize)sysconf(_SC_PAGESIZE)) {
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, basic.deviceName, .value = d->import_alignment,
                  .text = "imports of host memory by the page");
        return false;
    }
    return true;
}

bool bhi_vk_device_init(struct bhi_vk_device *d, const struct bhi_backend_config *config,
                        struct bhi_error *error) {
    memset(d, 0, sizeof *d);
    if (!bhi_vk_instance_create(&d->api, config, &d->instance, error) ||
        !open_physical(d, config, error) || !pick_queue_family(d, error) ||
        !create_device(d, true, error)) {
        bhi_vk_device_fini(d);
        return false;
    }
    struct bhi_spirv_target *target = &d->target; /* its |floats| are filled in */
    target->api_version = d->api_version;
    target->capabilities = d->capabilities;
    target->capability_count =
        bhi_vk_features_capabilities(&d->enabled, d->subgroup_operations, d->capabilities,
                                     sizeof d->capabilities / sizeof *d->capabilities);
    target->capability_count += bhi_float_modes_capabilities(
        &target->floats, d->capabilities + target->capability_count,
        sizeof d->capabilities / sizeof *d->capabilities - target->capability_count);
    target->extensions = d->spirv_extensions;
    target->extension_count = bhi_vk_features_spirv_extensions(
        &d->enabled, d->spirv_extensions, sizeof d->spirv_extensions / sizeof *d->spirv_extensions);
    target->scalar_block_layout = d->enabled.v12.scalarBlockLayout;
    target->uniform_standard_layout = d->enabled.v12.uniformBufferStandardLayout;
    target->workgroup_scalar_layout =
        d->enabled.explicit_layout.workgroupMemoryExplicitLayoutScalarBlockLayout;
    target->local_size_id = d->enabled.v13.maintenance4;
    return true;
}

bool bhi_vk_device_init_transfer(struct bhi_vk_device *d, const struct bhi_backend_config *config,
                                 struct bhi_error *error) {
    memset(d, 0, sizeof *d);
    bool good = bhi_vk_instance_create(&d->api, config, &d->instance, error) &&
                open_physical(d, config, error) && pick_queue_family(d, error);
    if (good && d->transfer_family == UINT32_MAX) {
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, "the device",
                  .text = "queue for transfers alone, or shares no memory");
        good = false;
    }
    if (!good || !create_device(d, false, error)) {
        bhi_vk_device_fini(d);
        return false;
    }
    return true;
}

void bhi_vk_device_fini(struct bhi_vk_device *d) {
    if (d->device != VK_NULL_HANDLE) {
        PFN_vkDestroyDevice destroy = d->api.DestroyDevice;
        if (!destroy) {
            destroy = (PFN_vkDestroyDevice)d->api.GetDeviceProcAddr(d->device, "vkDestroyDevice");
        }
        if (destroy) {
            destroy(d->device, NULL);
        }
    }
    if (d->instance != VK_NULL_HANDLE) {
        d->api.DestroyInstance(d->instance, NULL);
    }
    memset(d, 0, sizeof *d);
}

static uint32_t clamp(uint64_t value, uint64_t low, uint64_t high) {
    return (uint32_t)(value < low ? low : value > high ? high : value);
}

static uint64_t add_up(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Reports the device-local heaps. |asks|: also how much of them is free. What this process has
 * itself is in use, but it is also in the budget. */
static void describe_memory(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                            const VkPhysicalDeviceMemoryProperties *memory, bool asks,
                            struct bhi_msg_device *out) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    if (asks) {
        api->GetPhysicalDeviceMemoryProperties2(physical, &all);
    }
    out->memory_known = asks;
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        const uint64_t size = memory->memoryHeaps[i].size;
        const uint64_t most = budget.heapBudget[i], used = budget.heapUsage[i];
        const uint64_t unused = most > used ? most - used : 0;
        if (!(memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) {
            continue;
        }
        out->memory_bytes = size > out->memory_bytes ? size : out->memory_bytes;
        out->memory_total = add_up(out->memory_total, size);
        out->memory_free = add_up(out->memory_free, unused < size ? unused : size);
    }
}

static void describe_address(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                             struct bhi_msg_device *out) {
    const struct bhi_pci pci = address_of(api, physical);
    if (pci.known && pci.bus <= 255 && pci.device <= 31 && pci.function <= 7) {
        out->pci_known = 1;
        out->pci_domain = pci.domain;
        out->pci_bus = pci.bus;
        out->pci_device = pci.device;
        out->pci_function = pci.function;
    }
}

static void describe(const struct bhi_vk_api *api, VkPhysicalDevice physical,
                     struct bhi_msg_device *out) {
    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
        .pNext = &subgroup};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, .pNext = &host};
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                       .pNext = &driver};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &id};
    api->GetPhysicalDeviceProperties(physical, &all.properties);
    const uint32_t version = all.properties.apiVersion;
    if (version >= VK_API_VERSION_1_2) {
        api->GetPhysicalDeviceProperties2(physical, &all);
    }
    VkPhysicalDeviceMemoryProperties memory;
    api->GetPhysicalDeviceMemoryProperties(physical, &memory);
    struct bhi_vk_features features;
    if (bhi_vk_features_query(api, physical, version, &features) == VK_SUCCESS) {
        const bool sentinel = version >= VK_API_VERSION_1_2 &&
                              bhi_vk_transfer_family(api, physical, features.has_memory_fd,
                                                     runs_whole_loops(&driver)) != UINT32_MAX;
        bhi_vk_features_narrow(&features);
        out->features =
            bhi_vk_features_bits(&features, compute_subgroup_operations(&subgroup), &memory);
        out->features |= sentinel ? BHI_FEATURE_SENTINEL | BHI_FEATURE_ABORT_WORD : 0;
    }
    const bool is_cpu = all.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    out->features |= bhi_vk_memory_reaches(&memory, is_cpu) ? BHI_FEATURE_ABORT_WORD : 0;
    out->features |= !is_cpu && features.has_memory_fd ? BHI_FEATURE_MEMORY_EXPORT : 0;
    out->features |= runs_whole_loops(&driver) ? BHI_FEATURE_WHOLE_LOOPS : 0;
    out->features |= runs_whole_grids(&driver) ? BHI_FEATURE_WHOLE_GRIDS : 0;
    const VkPhysicalDeviceLimits *limits = &all.properties.limits;
    out->vendor_id = all.properties.vendorID;
    out->device_id = all.properties.deviceID;
    out->device_type = clamp(all.properties.deviceType, 0, 4);
    out->api_version = version;
    out->driver_version = all.properties.driverVersion;
    memcpy(out->uuid, id.deviceUUID, sizeof out->uuid);
    memcpy(out->cache_uuid, all.properties.pipelineCacheUUID, sizeof out->cache_uuid);
    /* A processor's memory is the machine's: its driver is not asked. */
    describe_memory(api, physical, &memory,
                    !is_cpu && features.has_memory_budget && version >= VK_API_VERSION_1_2, out);
    describe_address(api, physical, out);
    out->max_groups_x = clamp(limits->maxComputeWorkGroupCount[0], 1, UINT32_MAX);
    out->max_groups_y = clamp(limits->maxComputeWorkGroupCount[1], 1, UINT32_MAX);
    out->max_groups_z = clamp(limits->maxComputeWorkGroupCount[2], 1, UINT32_MAX);
    out->max_group_invocations = clamp(limits->maxComputeWorkGroupInvocations, 1, UINT32_MAX);
    out->max_shared_bytes = limits->maxComputeSharedMemorySize;
    out->max_push_bytes = clamp(limits->maxPushConstantsSize, 0, 4096);
    out->max_storage_range = limits->maxStorageBufferRange;
    out->max_uniform_range = limits->maxUniformBufferRange;
    out->storage_alignment = clamp(limits->minStorageBufferOffsetAlignment, 1, 65536);
    out->uniform_alignment = clamp(limits->minUniformBufferOffsetAlignment, 1, 65536);
    out->import_alignment = clamp(host.minImportedHostPointerAlignment, 1, 1048576);
    bhi_text_sanitise(out->name, sizeof out->name, all.properties.deviceName,
                      strnlen(all.properties.deviceName, sizeof all.properties.deviceName));
    bhi_text_sanitise(out->driver, sizeof out->driver, driver.driverName,
                      strnlen(driver.driverName, sizeof driver.driverName));
    bhi_text_sanitise(out->driver_info, sizeof out->driver_info, driver.driverInfo,
                      strnlen(driver.driverInfo, sizeof driver.driverInfo));
}

size_t bhi_vk_device_messages(const struct bhi_vk_api *api, VkInstance instance,
                              VkPhysicalDevice chosen, struct bhi_msg_device *out,
                              size_t capacity) {
    VkPhysicalDevice list[BHI_VK_MAX_DEVICES];
    uint32_t count;
    (void)list_devices(api, instance, list, &count);
    size_t written = 0;
    for (uint32_t i = 0; i < count && written < capacity; i++) {
        struct bhi_msg_device *device = &out[written++];
        memset(device, 0, sizeof *device);
        device->index = i;
        device->count = count;
        device->chosen = list[i] == chosen;
        describe(api, list[i], device);
    }
    return written;
}

void bhi_vk_device_describe_loss(struct bhi_vk_device *d, struct bhi_error *error) {
    if (!d->api.GetDeviceFaultInfoEXT) {
        return;
    }
    VkDeviceFaultCountsEXT counts = {.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT};
    if (d->api.GetDeviceFaultInfoEXT(d->device, &counts, NULL) < 0) {
        return;
    }
    VkDeviceFaultAddressInfoEXT addresses[4];
    VkDeviceFaultVendorInfoEXT vendor[4];
    memset(addresses, 0, sizeof addresses);
    memset(vendor, 0, sizeof vendor);
    counts.addressInfoCount = clamp(counts.addressInfoCount, 0, 4);
    counts.vendorInfoCount = clamp(counts.vendorInfoCount, 0, 4);
    counts.vendorBinarySize = 0;
    VkDeviceFaultInfoEXT info = {.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT,
                                 .pAddressInfos = addresses,
                                 .pVendorInfos = vendor};
    if (d->api.GetDeviceFaultInfoEXT(d->device, &counts, &info) < 0) {
        return;
    }
    BHI_ERROR_APPEND(error, "; the driver says: %.*s", VK_MAX_DESCRIPTION_SIZE, info.description);
    for (uint32_t i = 0; i < counts.addressInfoCount; i++) {
        BHI_ERROR_APPEND(error, "; address 0x%llx (kind %d, precision %llu)",
                         (unsigned long long)addresses[i].reportedAddress,
                         (int)addresses[i].addressType,
                         (unsigned long long)addresses[i].addressPrecision);
    }
    for (uint32_t i = 0; i < counts.vendorInfoCount; i++) {
        BHI_ERROR_APPEND(error, "; %.*s (%llu, %llu)", VK_MAX_DESCRIPTION_SIZE,
                         vendor[i].description, (unsigned long long)vendor[i].vendorFaultCode,
                         (unsigned long long)vendor[i].vendorFaultData);
    }
}
