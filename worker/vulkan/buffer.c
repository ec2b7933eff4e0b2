#include "worker/vulkan/buffer.h"

#include "base/memfd.h"
#include "worker/error.h"
#include "worker/vulkan/memory.h"
#include "worker/vulkan/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HANDLE_TYPE VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT

bool bhi_vk_buffer_create(struct bhi_vk_device *device, struct bhi_vk_buffer *b,
                          VkExternalMemoryHandleTypeFlags handle, uint64_t size, const char *call) {
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = handle};
    /* The queues for copies and for kernels own it together: for buffers that costs nothing, and no
     * record has to be told from which family it takes them over. */
    const uint32_t families[2] = {device->queue_family, device->transfer_family};
    const bool both = device->copy_queue != VK_NULL_HANDLE;
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = &external,
        .size = size,
        .usage = BHI_VK_BUFFER_USAGE,
        .sharingMode = both ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = both ? 2 : 0,
        .pQueueFamilyIndices = families,
    };
    VkResult result = device->api.CreateBuffer(device->device, &info, NULL, &b->buffer);
    if (result != VK_SUCCESS) {
        b->buffer = VK_NULL_HANDLE;
        bhi_error_vk(&b->error, result, call);
    }
    return result == VK_SUCCESS;
}

bool bhi_vk_buffer_import(struct bhi_vk_device *device, struct bhi_vk_buffer *b) {
    if (b->size == 0 && device->enabled.robustness2.nullDescriptor) {
        return true; /* nothing to import: the null descriptor is bound */
    }
    VkMemoryHostPointerPropertiesEXT pointer = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkResult result = device->api.GetMemoryHostPointerPropertiesEXT(device->device, HANDLE_TYPE,
                                                                    b->pointer, &pointer);
    if (result != VK_SUCCESS) {
        bhi_error_vk(&b->error, result, "vkGetMemoryHostPointerPropertiesEXT");
        return false;
    }
    if (!bhi_vk_buffer_create(device, b, HANDLE_TYPE, b->size > 0 ? b->size : 4,
                              "vkCreateBuffer")) {
        return false;
    }
    VkMemoryRequirements needs;
    device->api.GetBufferMemoryRequirements(device->device, b->buffer, &needs);
    const int type =
        bhi_vk_memory_type(&device->memory, pointer.memoryTypeBits & needs.memoryTypeBits,
                           BHI_HOST_MEMORY, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 0);
    if (type < 0 || needs.size > b->mapped) {
        BHI_ERROR(&b->error, BH_REASON_DEVICE_STEP, "import host memory", .value = b->mapped,
                  .text = type < 0 ? "no coherent memory type" : NULL);
        bhi_vk_buffer_release(device, b);
        return false;
    }
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = HANDLE_TYPE,
        .pHostPointer = b->pointer,
    };
    const VkMemoryAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = &import,
        .allocationSize = b->mapped,
        .memoryTypeIndex = (uint32_t)type,
    };
    result = device->api.AllocateMemory(device->device, &allocate, NULL, &b->memory);
    if (result != VK_SUCCESS) {
        b->memory = VK_NULL_HANDLE;
        bhi_error_vk(&b->error, result, "vkAllocateMemory (import of a buffer)");
        bhi_vk_buffer_release(device, b);
        return false;
    }
    result = device->api.BindBufferMemory(device->device, b->buffer, b->memory, 0);
    if (result != VK_SUCCESS) {
        bhi_error_vk(&b->error, result, "vkBindBufferMemory");
        bhi_vk_buffer_release(device, b);
        return false;
    }
    return true;
}

static void *map(struct bhi_vk_buffer *b, int protection, int flags, int fd) {
    void *pointer = mmap(NULL, b->mapped, protection, flags, fd, 0);
    if (pointer == MAP_FAILED) {
        BHI_ERROR(&b->error, BH_REASON_HOST_MEMORY, NULL, .value = b->mapped, .sys_errno = errno,
                  .text =
                      fd < 0 ? "a copy of a buffer, which is mapped" : "a buffer, which is mapped");
        return NULL;
    }
    return pointer;
}

/* If the device does not import a read-only mapping, it gets a copy. */
static void import_read_only(struct bhi_vk_device *device, struct bhi_vk_buffer *b) {
    if (device->imports_read_only && bhi_vk_buffer_import(device, b)) {
        return;
    }
    void *copy = map(b, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!copy) {
        return;
    }
    b->error.status = BH_OK;
    b->source = b->pointer;
    b->pointer = copy;
    bhi_vk_buffer_import(device, b);
}

struct bhi_vk_buffer *bhi_vk_buffer_attach(struct bhi_vk_device *device, uint64_t id, int fd,
                                           uint64_t size, enum bhi_attach access) {
    struct bhi_vk_buffer *b = calloc(1, sizeof *b);
    if (!b) {
        close(fd);
        return NULL;
    }
    b->id = id;
    b->size = size;
    const bool writable = access == BHI_ATTACH_WRITE;
    b->writable = writable;
    b->constant = access == BHI_ATTACH_CONSTANT;
    int err = bhi_memfd_verify(fd, size, 0);
    uint64_t pages = bhi_page_round(size);
    if (err != 0 || pages == 0) {
        if (err == -ENOMEM) {
            BHI_ERROR_SAY(&b->error, BH_REASON_HOST_MEMORY, "buffer %llu", (unsigned long long)id);
        } else {
            BHI_ERROR(&b->error, BH_REASON_DEVICE_STEP, "use the memory of a buffer", .value = id,
                      .sys_errno = err != 0 ? -err : EINVAL);
        }
    } else {
        b->mapped = (size_t)pages;
        b->pointer =
            map(b, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_POPULATE, fd);
        if (b->pointer && writable) {
            bhi_vk_buffer_import(device, b);
        } else if (b->pointer) {
            import_read_only(device, b);
        }
    }
    close(fd);
    return b;
}

void bhi_vk_buffer_release(struct bhi_vk_device *device, struct bhi_vk_buffer *b) {
    device->api.DestroyBuffer(device->device, b->buffer, NULL);
    b->buffer = VK_NULL_HANDLE;
    device->api.FreeMemory(device->device, b->memory, NULL);
    b->memory = VK_NULL_HANDLE;
}

void bhi_vk_buffer_destroy(struct bhi_vk_device *device, struct bhi_vk_buffer *b) {
    if (!b) {
        return;
    }
    bhi_vk_buffer_release(device, b);
    if (b->pointer) {
        munmap(b->pointer, b->mapped);
    }
    if (b->source) {
        munmap(b->source, b->mapped);
    }
    free(b);
}
