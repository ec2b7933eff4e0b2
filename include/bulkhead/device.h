/* The devices of this machine. */
#ifndef BULKHEAD_DEVICE_H
#define BULKHEAD_DEVICE_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A Vulkan device, or a GPU once more, for CUDA ("cuda:0"), where a field says the same of CUDA. */
typedef struct bh_device_info {
    size_t struct_size;             /* sizeof(bh_device_info) */
    char selector[48];              /* for bh_stream_options.device */
    char name[256];                 /* VkPhysicalDeviceProperties.deviceName */
    char driver[256];               /* VkPhysicalDeviceDriverProperties.driverName */
    char driver_info[256];          /* its version, as the driver writes it */
    uint32_t vendor_id;             /* VkPhysicalDeviceProperties.vendorID */
    uint32_t device_id;             /* VkPhysicalDeviceProperties.deviceID */
    uint32_t device_type;           /* VkPhysicalDeviceType */
    uint32_t api_version;           /* of Vulkan or CUDA, as VK_MAKE_API_VERSION */
    uint32_t driver_version;        /* VkPhysicalDeviceProperties.driverVersion */
    uint8_t uuid[16];               /* VkPhysicalDeviceIDProperties.deviceUUID */
    uint64_t memory_bytes;          /* largest device-local heap */
    uint32_t max_groups[3];         /* workgroups of a dispatch along each axis */
    uint32_t max_group_invocations; /* of one workgroup */
    uint32_t max_shared_bytes;      /* workgroup memory */
    uint32_t max_push_bytes;        /* push constants */
    uint64_t max_storage_range;     /* bytes of one storage buffer binding */
    uint64_t max_uniform_range;     /* bytes of one uniform buffer binding */
    uint32_t storage_alignment;     /* alignment of the offset of a storage buffer binding */
    uint32_t uniform_alignment;     /* alignment of the offset of a uniform buffer binding */
    uint64_t import_alignment;      /* alignment of imported memory */
    uint32_t feature_count;         /* elements of |features| */
    const char *features[64];       /* names of features that workers use, constant strings: names
                                       of Vulkan features and extensions, shortened, and the
                                       library's own: abortWord, wholeLoops, wholeGrids, sentinel
                                       (docs/sandbox.md, docs/kernels.md, docs/trust.md) */
    uint64_t memory_total;          /* size of all device-local heaps */
    uint64_t memory_free;           /* bytes of them that a new process could get, as the driver
                                       says (VK_EXT_memory_budget); see |memory_known| */
    uint32_t memory_known;          /* 0: |memory_free| is not known, as on a CPU driver */
    char pci[20];                   /* PCI address, "0000:65:00.0"; empty: not known */
} bh_device_info;

/* Lists the devices of every supported driver, as a worker sees them. Starts and ends workers.
 * bh_device_info.memory_free is what a process of this context read when it started; for a newer
 * value create a new context. Fills in at most |capacity| elements; *out_count is how many devices
 * there are. Blocks, at most 30 s a driver. Not in a log callback. Returns BH_OK if there is
 * a device; otherwise the reason: BH_NO_DEVICE, BH_UNAVAILABLE, BH_SYSTEM. */
BH_API BH_MUST_USE bh_status bh_devices(bh_context *context, bh_device_info *out_devices,
                                        size_t capacity, size_t *out_count, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
