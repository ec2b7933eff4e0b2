#include "worker/vulkan/export.h"

#include "worker/error.h"
#include "worker/vulkan/commands.h"
#include "worker/vulkan/memory.h"
#include "worker/vulkan/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HANDLE_TYPE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

/* Appends the size of the device's heap and how much of it is free. */
static void say_sizes(const struct bhi_vk_device *device, uint32_t heap, uint64_t bytes,
                      struct bhi_error *error) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    char unused[64] = "";
    if (device->enabled.has_memory_budget) {
        device->api.GetPhysicalDeviceMemoryProperties2(device->physical, &all);
        const uint64_t most = budget.heapBudget[heap], used = budget.heapUsage[heap];
        snprintf(unused, sizeof unused, "%llu",
                 (unsigned long long)(most > used ? most - used : 0));
    }
    BHI_ERROR(error, BH_REASON_DEVICE_HEAP, NULL, .value = bytes,
              .limit = device->memory.memoryHeaps[heap].size, .text = unused,
              .vk_result = VK_ERROR_OUT_OF_DEVICE_MEMORY);
}

/* Returns true if an import has failed because of what was to be imported, not for want of something
 * here. */
static bool is_of_the_handle(VkResult result) {
    return result != VK_ERROR_OUT_OF_HOST_MEMORY && result != VK_ERROR_OUT_OF_DEVICE_MEMORY &&
           result != VK_ERROR_TOO_MANY_OBJECTS && result != VK_ERROR_DEVICE_LOST;
}

/* Makes the buffer, with new memory (|fd| is -1) or that of |fd|, which it takes over on
 * success. */
static bool create(struct bhi_vk_device *device, struct bhi_vk_buffer *b, int fd) {
    const struct bhi_vk_api *vk = &device->api;
    /* Rounded up, so that it can be cleared to its end. */
    if (!bhi_vk_buffer_create(device, b, HANDLE_TYPE, (b->size + 3) & ~UINT64_C(3),
                              "vkCreateBuffer (device memory)")) {
        return false;
    }
    const VkBufferMemoryRequirementsInfo2 of = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = b->buffer};
    VkMemoryDedicatedRequirements dedicated = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
                                   .pNext = &dedicated};
    vk->GetBufferMemoryRequirements2(device->device, &of, &needs);
    /* Memory that only the device sees: on some devices memory that the host sees cannot be
     * exported. The choice is the same in each worker, because an import must use its maker's. */
    const int type = bhi_vk_memory_type(&device->memory, needs.memoryRequirements.memoryTypeBits,
                                        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0,
                                        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
    if (type < 0) {
        BHI_ERROR(&b->error, BH_REASON_DEVICE_STEP, "hold buffers in memory of its own");
        return false;
    }
    const VkMemoryDedicatedAllocateInfo alone = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = b->buffer};
    const void *next = dedicated.requiresDedicatedAllocation || dedicated.prefersDedicatedAllocation
                           ? &alone
                           : NULL;
    const VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
        .pNext = next,
        .handleTypes = HANDLE_TYPE,
    };
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .pNext = next,
        .handleType = HANDLE_TYPE,
        .fd = fd,
    };
    const VkMemoryAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = fd < 0 ? (const void *)&export : &import,
        .allocationSize = needs.memoryRequirements.size,
        .memoryTypeIndex = (uint32_t)type,
    };
    VkResult result = vk->AllocateMemory(device->device, &allocate, NULL, &b->memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY && fd < 0) {
        b->memory = VK_NULL_HANDLE;
        say_sizes(device, device->memory.memoryTypes[type].heapIndex, b->size, &b->error);
        return false;
    }
    if (result != VK_SUCCESS) {
        b->memory = VK_NULL_HANDLE;
        bhi_error_vk(&b->error, result,
                     fd < 0 ? "vkAllocateMemory (device memory)"
                            : "vkAllocateMemory (import of device memory)");
        b->error.bad_memory = fd >= 0 && is_of_the_handle(result) ? b->id : 0;
        return false;
    }
    b->imported = fd >= 0;
    result = vk->BindBufferMemory(device->device, b->buffer, b->memory, 0);
    if (result != VK_SUCCESS) {
        bhi_error_vk(&b->error, result, "vkBindBufferMemory (device memory)");
    }
    return result == VK_SUCCESS;
}

bool bhi_vk_export_clear(struct bhi_vk_device *device, const struct bhi_vk_once *once,
                         struct bhi_vk_buffer *buffer) {
    VkResult result = bhi_vk_commands_begin(device, once->commands, true);
    if (result == VK_SUCCESS) {
        device->api.CmdFillBuffer(once->commands, buffer->buffer, 0, VK_WHOLE_SIZE, 0);
        /* Whatever uses the buffer first sees the zeros. */
        bhi_vk_barrier(device, once->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                       VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                       VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
        result = device->api.EndCommandBuffer(once->commands);
    }
    if (result == VK_SUCCESS) {
        result = bhi_vk_submit(device, device->queue, once->commands, once->fence);
    }
    if (result != VK_SUCCESS) {
        bhi_error_vk(&buffer->error, result, "clearing device memory");
        *once->lost |= buffer->error.status == BH_DEVICE_LOST;
        return false;
    }
    result = bhi_vk_finish(device, once->fence);
    if (result != VK_SUCCESS) {
        bhi_error_vk(&buffer->error, result, "clearing device memory");
        *once->lost = true;
    }
    return result == VK_SUCCESS;
}

static struct bhi_vk_buffer *new_buffer(uint64_t id, uint64_t size) {
    struct bhi_vk_buffer *b = calloc(1, sizeof *b);
    if (b) {
        b->id = id;
        b->size = size;
        b->writable = true;
    }
    return b;
}

struct bhi_vk_buffer *bhi_vk_export_make(struct bhi_vk_device *device,
                                         const struct bhi_vk_once *once, uint64_t id, uint64_t size,
                                         int *out_fd) {
    struct bhi_vk_buffer *b = new_buffer(id, size);
    *out_fd = -1;
    if (!b) {
        return NULL;
    }
    if (!device->exports) {
        BHI_ERROR(&b->error, BH_REASON_WORKER_LACKS, .text = "export memory");
        return b;
    }
    if (create(device, b, -1) && bhi_vk_export_clear(device, once, b)) {
        const VkMemoryGetFdInfoKHR get = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
            .memory = b->memory,
            .handleType = HANDLE_TYPE,
        };
        VkResult result = device->api.GetMemoryFdKHR(device->device, &get, out_fd);
        if (result != VK_SUCCESS) {
            *out_fd = -1;
            bhi_error_vk(&b->error, result, "vkGetMemoryFdKHR");
        }
    }
    if (*out_fd < 0) {
        bhi_vk_buffer_release(device, b);
    }
    return b;
}

struct bhi_vk_buffer *bhi_vk_export_import(struct bhi_vk_device *device, uint64_t id, int fd,
                                           uint64_t size) {
    struct bhi_vk_buffer *b = new_buffer(id, size);
    if (b && !device->exports) {
        BHI_ERROR(&b->error, BH_REASON_WORKER_LACKS, .text = "import memory");
    } else if (b && !create(device, b, fd)) {
        bhi_vk_buffer_release(device, b);
    }
    if (!b || !b->imported) {
        close(fd);
    }
    return b;
}
