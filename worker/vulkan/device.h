/* Instance, physical devices, the device and its queues. */
#ifndef BHI_WORKER_VULKAN_DEVICE_H
#define BHI_WORKER_VULKAN_DEVICE_H

#include "worker/backend.h"
#include "worker/spirv/validate.h"
#include "worker/vulkan/features.h"

#define BHI_VK_MAX_DEVICES 64

struct bhi_vk_device {
    struct bhi_vk_api api;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t queue_family;
    uint32_t timestamp_bits; /* valid bits of the queue's timestamps; 0: it has none */
    /* Queue family that sets abort words (transfer.h); UINT32_MAX: none. */
    uint32_t transfer_family;
    uint32_t transfer_queues; /* of that family */
    VkQueue copy_queue;       /* one of them, for copies (copy_jobs.h); VK_NULL_HANDLE: none */
    uint32_t api_version;     /* the lower of instance and device */
    VkPhysicalDeviceLimits limits;
    VkDeviceSize import_alignment;
    bool imports_read_only; /* also memory that the host may not write */
    bool is_cpu;
    bool exports;      /* it can share its memory with other workers (export.h) */
    bool own_elements; /* each invocation uses its own index into an array of storage buffers */
    bool in_parts;     /* large grids are dispatched in parts (dispatch.h) */
    bool whole_loops;  /* it runs every loop to its end */
    bool whole_grids;  /* it runs grids whose number of workgroups exceeds 32 bits */
    VkPhysicalDeviceMemoryProperties memory;
    struct bhi_vk_features enabled;
    VkSubgroupFeatureFlags subgroup_operations; /* those that compute shaders may use */
    SpvCapability capabilities[64];             /* that kernels may declare */
    const char *spirv_extensions[32];
    struct bhi_spirv_target target;
};

bool bhi_vk_device_init(struct bhi_vk_device *device, const struct bhi_backend_config *config,
                        struct bhi_error *error);
/* Makes the device with the transfer queue alone, for a sentinel. UNSUPPORTED if it has no such
 * queue. */
bool bhi_vk_device_init_transfer(struct bhi_vk_device *device,
                                 const struct bhi_backend_config *config, struct bhi_error *error);
void bhi_vk_device_fini(struct bhi_vk_device *device);
/* Describes all devices of |instance|; see bhi_backend_devices(). */
size_t bhi_vk_device_messages(const struct bhi_vk_api *api, VkInstance instance,
                              VkPhysicalDevice chosen, struct bhi_msg_device *out, size_t capacity);
/* Writes their PCI addresses, in the same order. Returns how many it wrote. */
size_t bhi_vk_device_addresses(const struct bhi_vk_api *api, VkInstance instance,
                               struct bhi_pci *out, size_t capacity);
/* Makes an instance alone, to list devices where no device can be made. */
bool bhi_vk_instance_create(struct bhi_vk_api *api, const struct bhi_backend_config *config,
                            VkInstance *out_instance, struct bhi_error *error);
/* After VK_ERROR_DEVICE_LOST: appends what VK_EXT_device_fault reports to error->told.text. */
void bhi_vk_device_describe_loss(struct bhi_vk_device *device, struct bhi_error *error);

#endif
