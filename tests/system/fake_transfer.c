/* A driver that computes with lavapipe and looks like a GPU with a copy engine: a second family of
 * queues, which can transfer and nothing else and goes on while kernels hang, and memory on the
 * device that no processor can map, and that other processes can import. Underneath that memory is
 * a memfd, "fake-words", in which a test sees what is done to it. The driver has one such device,
 * or DEVICES of them.
 *
 * If there is a file "budget" beside the library, of 4096 bytes, the device is at PCI address
 * 0000:65:00.0 and reports how much of its memory is free. The file begins with three numbers, of
 * 20 digits each and a blank behind each: the heap's size, its budget, and how much of it this
 * process has. A test may write others at any time.
 *
 * With QUEUES 2 the family has a second queue, for copies (fake_engine.c). */
#include "fake_engine.h"
#include "fake_lavapipe.h"
#include "tests/harness/noise.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef DEVICES
#define DEVICES 1
#endif
#define MOST    256
#define PAGE    4096u
#define FD_NAME VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME

PFN_vkGetDeviceProcAddr real_device_proc;
VkDevice device;
static uint32_t host_type, device_type; /* of memory: lavapipe's, and ours behind them */

pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct memory {
    VkDeviceMemory memory;
    uint8_t *bytes;
    size_t size;
    int fd;
    bool host; /* of the process, not ours */
} memories[MOST];
static struct buffer {
    VkBuffer buffer;
    bool external; /* in the device's own memory */
    struct memory *memory;
    VkDeviceSize offset;
} buffers[MOST];
static const char *budget; /* the file's content; NULL: there is none */

/* -- what it looks like ----------------------------------------------------------------------- */

/* Maps the file |name| beside the library, for workers can open nothing. Returns NULL if there is
 * none. */
static void *map_beside(const char *name, int flags, int protection) {
    Dl_info self;
    char path[512];
    if (!dladdr((void *)&budget, &self)) {
        return NULL;
    }
    snprintf(path, sizeof path, "%s", self.dli_fname);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, 16, "%s", name);
    int fd = open(path, flags | O_CLOEXEC);
    void *bytes = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, protection, MAP_SHARED, fd, 0);
    if (fd >= 0) {
        close(fd);
    }
    return bytes == MAP_FAILED ? NULL : bytes;
}

__attribute__((constructor)) static void map_files(void) {
    budget = map_beside("budget", O_RDONLY, PROT_READ);
    fake_engine_page = map_beside("engine", O_RDWR, PROT_READ | PROT_WRITE);
}

__attribute__((destructor)) static void unmap_files(void) {
    if (budget) {
        munmap((void *)(uintptr_t)budget, PAGE);
    }
    if (fake_engine_page) {
        munmap(fake_engine_page, PAGE);
    }
}

static uint64_t budget_number(unsigned index) {
    char digits[21] = "";
    memcpy(digits, budget + (size_t)index * 21, 20);
    return strtoull(digits, NULL, 10);
}

static VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                           const VkAllocationCallbacks *allocator,
                                           VkInstance *out) {
    VkResult result = add_device(info, allocator, 0, -1);
    *out = devices[0].instance;
    return result;
}

#if DEVICES > 1
/* The one device, several times. */
static VkResult VKAPI_CALL enumerate_twice(VkInstance i, uint32_t *count, VkPhysicalDevice *out) {
    (void)i;
    for (uint32_t n = 0; out && n < DEVICES && n < *count; n++) {
        out[n] = devices[0].physical;
    }
    *count = DEVICES;
    return VK_SUCCESS;
}
#endif

static void VKAPI_CALL properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties *out) {
    REAL(vkGetPhysicalDeviceProperties)(physical, out);
    out->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static void VKAPI_CALL properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    REAL(vkGetPhysicalDeviceProperties2)(physical, out);
    out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    for (VkBaseOutStructure *next = out->pNext; next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
            VkPhysicalDeviceDriverProperties *driver = (void *)next;
            snprintf(driver->driverInfo, sizeof driver->driverInfo, "Mesa 25.0.7 (fake)");
        }
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT) {
            VkPhysicalDevicePCIBusInfoPropertiesEXT *pci = (void *)next;
            pci->pciDomain = pci->pciDevice = pci->pciFunction = 0;
            pci->pciBus = 0x65;
        }
    }
}

/* Those that lavapipe does not have. */
static bool is_own_extension(const char *name) {
    return strcmp(name, FD_NAME) == 0 ||
           (budget && (strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0 ||
                       strcmp(name, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME) == 0));
}

static VkResult VKAPI_CALL extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count,
                                      VkExtensionProperties *out) {
    static const char *const own[] = {FD_NAME, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
                                      VK_EXT_PCI_BUS_INFO_EXTENSION_NAME};
    VkExtensionProperties all[MOST];
    uint32_t room = MOST - 3, kept = 0;
    VkResult result = REAL(vkEnumerateDeviceExtensionProperties)(physical, layer, &room, all);
    for (uint32_t i = 0; i < room; i++) {
        if (!is_own_extension(all[i].extensionName)) {
            all[kept++] = all[i];
        }
    }
    room = kept;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (is_own_extension(own[i])) {
            snprintf(all[room].extensionName, sizeof all[room].extensionName, "%s", own[i]);
            all[room++].specVersion = 1;
        }
    }
    if (out) {
        room = *count < room ? *count : room;
        memcpy(out, all, room * sizeof *all);
    }
    *count = room;
    return result;
}

static void VKAPI_CALL families(VkPhysicalDevice physical, uint32_t *count,
                                VkQueueFamilyProperties *out) {
    VkQueueFamilyProperties all[2];
    uint32_t one = 1;
    REAL(vkGetPhysicalDeviceQueueFamilyProperties)(physical, &one, all);
    all[1] = (VkQueueFamilyProperties){.queueFlags = VK_QUEUE_TRANSFER_BIT,
                                       .queueCount = QUEUES,
                                       .minImageTransferGranularity = {1, 1, 1}};
    const uint32_t room = !out || *count > 2 ? 2 : *count;
    if (out) {
        memcpy(out, all, room * sizeof *all);
    }
    *count = room;
}

static void VKAPI_CALL external(VkPhysicalDevice physical,
                                const VkPhysicalDeviceExternalBufferInfo *info,
                                VkExternalBufferProperties *out) {
    (void)physical;
    out->externalMemoryProperties = (VkExternalMemoryProperties){0};
    if (info->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT) {
        out->externalMemoryProperties.externalMemoryFeatures =
            VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    }
}

static void VKAPI_CALL memory_types(VkPhysicalDevice physical,
                                    VkPhysicalDeviceMemoryProperties *out) {
    REAL(vkGetPhysicalDeviceMemoryProperties)(physical, out);
    host_type = 0;
    device_type = out->memoryTypeCount++;
    out->memoryTypes[device_type] =
        (VkMemoryType){.propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, .heapIndex = 0};
    if (budget) {
        out->memoryHeaps[0].size = budget_number(0);
    }
}

static void VKAPI_CALL memory_budget(VkPhysicalDevice physical,
                                     VkPhysicalDeviceMemoryProperties2 *out) {
    memory_types(physical, &out->memoryProperties);
    for (VkBaseOutStructure *next = out->pNext; next; next = next->pNext) {
        if (budget &&
            next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
            VkPhysicalDeviceMemoryBudgetPropertiesEXT *free_of = (void *)next;
            free_of->heapBudget[0] = budget_number(1);
            free_of->heapUsage[0] = budget_number(2);
        }
    }
}

/* -- memory ----------------------------------------------------------------------------------- */

static struct buffer *find_buffer(VkBuffer buffer) {
    for (size_t i = 0; i < MOST; i++) {
        if (buffers[i].buffer == buffer) {
            return &buffers[i];
        }
    }
    return NULL;
}

uint8_t *fake_bytes_of(VkBuffer buffer, VkDeviceSize offset, size_t *out_size) {
    const struct buffer *ours = find_buffer(buffer);
    if (!ours || !ours->memory || offset + ours->offset > ours->memory->size) {
        abort(); /* the engine cannot reach what is no buffer of ours */
    }
    *out_size = ours->memory->size - ours->offset - offset;
    return ours->memory->bytes + ours->offset + offset;
}

static VkResult VKAPI_CALL create_buffer(VkDevice d, const VkBufferCreateInfo *info,
                                         const VkAllocationCallbacks *allocator, VkBuffer *out) {
    VkBufferCreateInfo plain = *info;
    const VkExternalMemoryBufferCreateInfo *next = info->pNext;
    const bool shared = next &&
                        next->sType == VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO &&
                        next->handleTypes == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    plain.pNext = shared ? NULL : info->pNext;
    plain.sharingMode = VK_SHARING_MODE_EXCLUSIVE; /* lavapipe has one family */
    plain.queueFamilyIndexCount = 0;
    VkResult result = DEVICE(vkCreateBuffer)(d, &plain, allocator, out);
    if (result == VK_SUCCESS) {
        pthread_mutex_lock(&fake_mutex);
        struct buffer *slot = find_buffer(VK_NULL_HANDLE);
        if (slot) {
            *slot = (struct buffer){.buffer = *out, .external = shared};
        }
        pthread_mutex_unlock(&fake_mutex);
    }
    return result;
}

static void VKAPI_CALL destroy_buffer(VkDevice d, VkBuffer buffer,
                                      const VkAllocationCallbacks *allocator) {
    pthread_mutex_lock(&fake_mutex);
    struct buffer *ours = buffer == VK_NULL_HANDLE ? NULL : find_buffer(buffer);
    if (ours) {
        *ours = (struct buffer){0};
    }
    pthread_mutex_unlock(&fake_mutex);
    DEVICE(vkDestroyBuffer)(d, buffer, allocator);
}

static void VKAPI_CALL requirements(VkDevice d, VkBuffer buffer, VkMemoryRequirements *out) {
    DEVICE(vkGetBufferMemoryRequirements)(d, buffer, out);
    pthread_mutex_lock(&fake_mutex);
    const struct buffer *ours = find_buffer(buffer);
    if (ours && ours->external) {
        out->memoryTypeBits = 1u << device_type;
        out->size = (out->size + PAGE - 1) / PAGE * PAGE;
    }
    pthread_mutex_unlock(&fake_mutex);
}

static void VKAPI_CALL requirements2(VkDevice d, const VkBufferMemoryRequirementsInfo2 *info,
                                     VkMemoryRequirements2 *out) {
    DEVICE(vkGetBufferMemoryRequirements2)(d, info, out);
    requirements(d, info->buffer, &out->memoryRequirements);
}

static struct memory *find_memory(VkDeviceMemory memory) {
    for (size_t i = 0; i < MOST; i++) {
        if (memories[i].memory == memory) {
            return &memories[i];
        }
    }
    return NULL;
}

static VkResult import_pages(VkDevice d, void *bytes, size_t size, VkDeviceMemory *out) {
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = bytes};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &import,
                                       .allocationSize = size,
                                       .memoryTypeIndex = host_type};
    return DEVICE(vkAllocateMemory)(d, &info, NULL, out);
}

/* Remembers what is imported: the engine reaches it. */
static VkResult allocate_host(VkDevice d, const VkMemoryAllocateInfo *info,
                              const VkAllocationCallbacks *allocator, VkDeviceMemory *out) {
    const VkImportMemoryHostPointerInfoEXT *import = info->pNext;
    VkResult result = DEVICE(vkAllocateMemory)(d, info, allocator, out);
    if (result == VK_SUCCESS && import &&
        import->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) {
        pthread_mutex_lock(&fake_mutex);
        struct memory *slot = find_memory(VK_NULL_HANDLE);
        if (slot) {
            *slot = (struct memory){*out, import->pHostPointer, info->allocationSize, -1, true};
        }
        pthread_mutex_unlock(&fake_mutex);
    }
    return result;
}

static VkResult VKAPI_CALL allocate(VkDevice d, const VkMemoryAllocateInfo *info,
                                    const VkAllocationCallbacks *allocator, VkDeviceMemory *out) {
    if (info->memoryTypeIndex != device_type) {
        return allocate_host(d, info, allocator, out);
    }
    const VkImportMemoryFdInfoKHR *import = info->pNext;
    const bool imports = import && import->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
    const size_t size = (info->allocationSize + PAGE - 1) / PAGE * PAGE;
    struct stat status;
    int fd = imports ? import->fd : memfd_create("fake-words", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || (!imports && ftruncate(fd, (off_t)size) != 0)) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (fstat(fd, &status) != 0 || (size_t)status.st_size != size) {
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (!imports) {
        bht_noise(bytes, size);
    }
    VkResult result = import_pages(d, bytes, size, out);
    pthread_mutex_lock(&fake_mutex);
    struct memory *slot = result == VK_SUCCESS ? find_memory(VK_NULL_HANDLE) : NULL;
    if (slot) {
        *slot = (struct memory){*out, bytes, size, imports ? -1 : fd, false};
    } else {
        munmap(bytes, size);
    }
    pthread_mutex_unlock(&fake_mutex);
    if (imports && result == VK_SUCCESS) {
        close(fd); /* it is the driver's now */
    }
    return result;
}

static void VKAPI_CALL free_memory(VkDevice d, VkDeviceMemory memory,
                                   const VkAllocationCallbacks *allocator) {
    DEVICE(vkFreeMemory)(d, memory, allocator);
    pthread_mutex_lock(&fake_mutex);
    struct memory *ours = memory == VK_NULL_HANDLE ? NULL : find_memory(memory);
    if (ours && !ours->host) {
        munmap(ours->bytes, ours->size);
    }
    if (ours && ours->fd >= 0) {
        close(ours->fd);
    }
    if (ours) {
        *ours = (struct memory){0};
    }
    pthread_mutex_unlock(&fake_mutex);
}

static VkResult VKAPI_CALL bind(VkDevice d, VkBuffer buffer, VkDeviceMemory memory,
                                VkDeviceSize offset) {
    pthread_mutex_lock(&fake_mutex);
    struct buffer *ours = find_buffer(buffer);
    if (ours) {
        ours->memory = find_memory(memory);
        ours->offset = offset;
    }
    pthread_mutex_unlock(&fake_mutex);
    return DEVICE(vkBindBufferMemory)(d, buffer, memory, offset);
}

/* Once: the descriptor itself. */
static VkResult VKAPI_CALL export_memory(VkDevice d, const VkMemoryGetFdInfoKHR *info, int *out) {
    (void)d;
    pthread_mutex_lock(&fake_mutex);
    struct memory *ours = find_memory(info->memory);
    *out = ours ? ours->fd : -1;
    if (ours) {
        ours->fd = -1;
    }
    pthread_mutex_unlock(&fake_mutex);
    return *out >= 0 ? VK_SUCCESS : VK_ERROR_TOO_MANY_OBJECTS;
}

/* -- entry points ----------------------------------------------------------------------------- */

static PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice d, const char *name) {
    static const struct entry own[] = {
        {"vkCreateBuffer", (PFN_vkVoidFunction)create_buffer},
        {"vkDestroyBuffer", (PFN_vkVoidFunction)destroy_buffer},
        {"vkGetBufferMemoryRequirements", (PFN_vkVoidFunction)requirements},
        {"vkGetBufferMemoryRequirements2", (PFN_vkVoidFunction)requirements2},
        {"vkAllocateMemory", (PFN_vkVoidFunction)allocate},
        {"vkFreeMemory", (PFN_vkVoidFunction)free_memory},
        {"vkBindBufferMemory", (PFN_vkVoidFunction)bind},
        {"vkGetMemoryFdKHR", (PFN_vkVoidFunction)export_memory},
        {0},
    };
    PFN_vkVoidFunction ours = find_entry(own, name);
    ours = ours ? ours : fake_engine_proc(name);
    return ours ? ours : real_device_proc(d, name);
}

/* Its one queue, whichever is asked for. */
static VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                         const VkAllocationCallbacks *allocator, VkDevice *out) {
    const char *names[32];
    uint32_t count = 0;
    for (uint32_t i = 0; i < info->enabledExtensionCount && count < 32; i++) {
        if (!is_own_extension(info->ppEnabledExtensionNames[i])) {
            names[count++] = info->ppEnabledExtensionNames[i];
        }
    }
    VkDeviceQueueCreateInfo queue = info->pQueueCreateInfos[0];
    queue.queueFamilyIndex = 0;
    VkDeviceCreateInfo changed = *info;
    changed.queueCreateInfoCount = 1;
    changed.pQueueCreateInfos = &queue;
    changed.enabledExtensionCount = count;
    changed.ppEnabledExtensionNames = names;
    real_device_proc = REAL(vkGetDeviceProcAddr);
    VkResult result = REAL(vkCreateDevice)(physical, &changed, allocator, out);
    if (result == VK_SUCCESS) {
        device = *out;
        fake_engine_start();
        reserve_memory(real_device_proc, device);
    }
    return result;
}

const struct entry own_entries[] = {
    {"vkCreateInstance", (PFN_vkVoidFunction)create_instance},
    {"vkDestroyInstance", (PFN_vkVoidFunction)destroy_instance},
#if DEVICES > 1
    {"vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)enumerate_twice},
#endif
    {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)properties},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)properties2},
    {"vkEnumerateDeviceExtensionProperties", (PFN_vkVoidFunction)extensions},
    {"vkGetPhysicalDeviceQueueFamilyProperties", (PFN_vkVoidFunction)families},
    {"vkGetPhysicalDeviceExternalBufferProperties", (PFN_vkVoidFunction)external},
    {"vkGetPhysicalDeviceMemoryProperties", (PFN_vkVoidFunction)memory_types},
    {"vkGetPhysicalDeviceMemoryProperties2", (PFN_vkVoidFunction)memory_budget},
    {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)device_proc},
    {"vkCreateDevice", (PFN_vkVoidFunction)create_device},
    {0},
};
