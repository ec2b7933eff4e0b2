/* Instance, physical devices, the device and its one queue. */
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
    uint32_t timestamp_bits; /* valid in a timestamp of the queue; 0: it has none */
    /* Where abort words are set by a queue of their own (transfer.h); UINT32_MAX: nowhere. */
    uint32_t transfer_family;
    uint32_t api_version; /* the lower of instance and device */
    VkPhysicalDeviceLimits limits;
    VkDeviceSize import_alignment;
    bool imports_read_only; /* what the host may not write, too */
    bool is_cpu;
    bool exports;      /* its memory, to other workers (export.h) */
    bool own_elements; /* of an array of storage buffers each invocation takes its own */
    bool in_parts;     /* large grids are dispatched in parts (dispatch.h) */
    bool whole_loops;  /* it runs loops to their end, however long they are */
    bool whole_grids;  /* it runs grids of more workgroups than 32 bits count, too */
    VkPhysicalDeviceMemoryProperties memory;
    struct bhi_vk_features enabled;
    VkSubgroupFeatureFlags subgroup_operations; /* those that compute shaders may use */
    SpvCapability capabilities[64];             /* that kernels may declare */
    const char *spirv_extensions[32];
    struct bhi_spirv_target target;
};

bool bhi_vk_device_init(struct bhi_vk_device *device, const struct bhi_backend_config *config,
                        struct bhi_error *error);
/* With the transfer queue alone, for a sentinel. UNSUPPORTED where there is none. */
bool bhi_vk_device_init_transfer(struct bhi_vk_device *device,
                                 const struct bhi_backend_config *config, struct bhi_error *error);
void bhi_vk_device_fini(struct bhi_vk_device *device);
/* Describes all devices of |instance|; see bhi_backend_devices(). */
size_t bhi_vk_device_messages(const struct bhi_vk_api *api, VkInstance instance,
                              VkPhysicalDevice chosen, struct bhi_msg_device *out, size_t capacity);
/* Where they are, in the same order. Returns how many were written. */
size_t bhi_vk_device_addresses(const struct bhi_vk_api *api, VkInstance instance,
                               struct bhi_pci *out, size_t capacity);
/* Instance alone, for the messages where no device can be had. */
bool bhi_vk_instance_create(struct bhi_vk_api *api, const struct bhi_backend_config *config,
                            VkInstance *out_instance, struct bhi_error *error);
/* After VK_ERROR_DEVICE_LOST: appends what VK_EXT_device_fault tells to error->text. */
void bhi_vk_device_describe_loss(struct bhi_vk_device *device, struct bhi_error *error);

#endif
