/* A driver that looks like NVIDIA's on a machine with three GPUs, and computes with lavapipe.
 *
 * It has a device for each of /dev/nvidia0 to 2 that it can open while an instance is made, the
 * highest number first, and tells PCI addresses that are in no order. Each submission reports, into
 * the node of its device, what can be opened by then. What /dev/nvidiactl holds is how it behaves:
 *
 *   picky   no instance without all nodes        dies    of a node that is refused
 *   silent  no PCI addresses                     */
#include "fake_lavapipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES 3

static const uint32_t bus_of[NODES] = {0x65, 0x17, 0xca};

static struct fake_device *chosen;
static char behaviour[16];
static PFN_vkQueueSubmit real_submit;

static int open_node(unsigned number) {
    char path[32];
    snprintf(path, sizeof path, "/dev/nvidia%u", number);
    return open(path, O_RDWR | O_CLOEXEC);
}

static VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                           const VkAllocationCallbacks *allocator,
                                           VkInstance *out) {
    int control = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    if (control < 0 || read(control, behaviour, sizeof behaviour - 1) < 0) {
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    close(control);
    VkResult result = VK_SUCCESS;
    for (unsigned number = NODES; number-- > 0 && result == VK_SUCCESS;) {
        int fd = open_node(number);
        if (fd >= 0) {
            result = add_device(info, allocator, number, fd);
        } else if (strcmp(behaviour, "dies") == 0 && errno == EACCES) {
            abort();
        }
    }
    if (result != VK_SUCCESS || device_count == 0 ||
        (strcmp(behaviour, "picky") == 0 && device_count < NODES)) {
        destroy_instance(VK_NULL_HANDLE, allocator);
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    *out = devices[0].instance;
    return VK_SUCCESS;
}

/* A GPU: a worker then leaves its memory file alone (worker/vulkan/reserve.h). */
static void disguise(const struct fake_device *gpu, VkPhysicalDeviceProperties *out) {
    snprintf(out->deviceName, sizeof out->deviceName, "Fake GPU %u", gpu->number);
    out->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static void VKAPI_CALL properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties *out) {
    REAL(vkGetPhysicalDeviceProperties)(physical, out);
    disguise(find_device(physical), out);
}

static void VKAPI_CALL properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    REAL(vkGetPhysicalDeviceProperties2)(physical, out);
    disguise(find_device(physical), &out->properties);
    for (VkBaseOutStructure *next = out->pNext; next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT) {
            VkPhysicalDevicePCIBusInfoPropertiesEXT *pci = (void *)next;
            pci->pciDomain = pci->pciDevice = pci->pciFunction = 0;
            pci->pciBus = bus_of[find_device(physical)->number];
        }
    }
}

static VkResult VKAPI_CALL extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count,
                                      VkExtensionProperties *out) {
    PFN_vkEnumerateDeviceExtensionProperties get = REAL(vkEnumerateDeviceExtensionProperties);
    const uint32_t more = strcmp(behaviour, "silent") == 0 ? 0 : 1;
    if (!out) {
        VkResult result = get(physical, layer, count, NULL);
        *count += more;
        return result;
    }
    uint32_t room = *count - more;
    VkResult result = get(physical, layer, &room, out);
    for (uint32_t i = 0; i < more; i++) {
        out[room] = (VkExtensionProperties){.extensionName = VK_EXT_PCI_BUS_INFO_EXTENSION_NAME};
    }
    *count = room + more;
    return result;
}

/* "B 0:EACCES 1:open 2:EACCES ctl:open", with A where filter B is not on. */
static void report(void) {
    char line[128];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    int used = snprintf(line, sizeof line, "%s", fd < 0 ? "B" : "A");
    if (fd >= 0) {
        close(fd);
    }
    for (unsigned number = 0; number <= NODES; number++) {
        fd = number < NODES ? open_node(number) : open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
        const char *result = fd >= 0 ? "open" : errno == EACCES ? "EACCES" : "other";
        if (number < NODES) {
            used += snprintf(line + used, sizeof line - (size_t)used, " %u:%s", number, result);
        } else {
            used += snprintf(line + used, sizeof line - (size_t)used, " ctl:%s\n", result);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    (void)!write(chosen->fd, line, (size_t)used);
}

static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                  VkFence fence) {
    report();
    return real_submit(queue, count, infos, fence);
}

static PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char *name) {
    PFN_vkVoidFunction found = REAL(vkGetDeviceProcAddr)(device, name);
    if (strcmp(name, "vkQueueSubmit") == 0) {
        real_submit = (PFN_vkQueueSubmit)found;
        return (PFN_vkVoidFunction)submit;
    }
    return found;
}

static VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                         const VkAllocationCallbacks *allocator, VkDevice *out) {
    chosen = find_device(physical);
    VkResult result = REAL(vkCreateDevice)(physical, info, allocator, out);
    if (result == VK_SUCCESS) {
        reserve_memory(REAL(vkGetDeviceProcAddr), *out);
    }
    return result;
}

const struct entry own_entries[] = {
    {"vkCreateInstance", (PFN_vkVoidFunction)create_instance},
    {"vkDestroyInstance", (PFN_vkVoidFunction)destroy_instance},
    {"vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)enumerate_devices},
    {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)properties},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)properties2},
    {"vkEnumerateDeviceExtensionProperties", (PFN_vkVoidFunction)extensions},
    {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)device_proc},
    {"vkCreateDevice", (PFN_vkVoidFunction)create_device},
    {0},
};
