/* Opens gates on a GPU. Usage: gate_opener SOCKET; tests find it by $BULKHEAD_TEST_GPU=SOCKET.
 *
 * A kernel that already runs on an NVIDIA GPU does not see what a processor writes to host memory:
 * the GPU's own cache has the line. A copy engine writes through that cache. So this imports the
 * page of a gate's word a second time, and a queue for transfers alone writes the word; each other
 * queue of the device would wait for the kernel. It is one process for all tests, started before
 * them, because the driver makes no device while a kernel without an end runs.
 *
 * A test connects for each gate and sends the address of its word (8 bytes): the answer 'i' says
 * that it is imported. Then it sends 'o', and 'd' says that the gate is open. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#define OPEN 0x600D600Du /* FX_GATE_OPEN */
#define PAGE 4096u       /* what a buffer has at least, and the driver's alignment of imports */
#define MOST 256         /* connections at a time */

__attribute__((format(printf, 1, 2))) _Noreturn static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("gate_opener: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const VkResult result = (call);                                                            \
        if (result != VK_SUCCESS) {                                                                \
            fail("%s: VkResult %d", #call, result);                                                \
        }                                                                                          \
    } while (0)

/* -- a test's memory --------------------------------------------------------------------------- */

/* The mapping that has |address|: which file, and where in it. */
static bool find_mapping(pid_t pid, uintptr_t address, ino_t *out_file, off_t *out_offset) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t begin, end;
        uint64_t offset, file;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64 " %*s %" SCNu64, &begin, &end,
                   &offset, &file) == 4 &&
            begin <= address && address < end) {
            *out_file = (ino_t)file;
            *out_offset = (off_t)(offset + (address - begin));
            found = true;
        }
    }
    if (maps) {
        fclose(maps);
    }
    return found;
}

/* The same file by a descriptor that the test has; -1: it has none. */
static int open_file(pid_t pid, ino_t file) {
    for (int fd = 0; fd < 4096; fd++) {
        char path[64];
        struct stat status;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        if (stat(path, &status) == 0 && status.st_ino == file && S_ISREG(status.st_mode)) {
            return open(path, O_RDWR | O_CLOEXEC);
        }
    }
    return -1;
}

/* The page with the word, and where in it the word is; NULL: the test is gone, or has not got it.
 */
static void *map_word(pid_t pid, uintptr_t address, VkDeviceSize *out_offset) {
    ino_t file;
    off_t offset;
    const int fd = find_mapping(pid, address, &file, &offset) ? open_file(pid, file) : -1;
    if (fd < 0) {
        fprintf(stderr, "gate_opener: process %d has no gate at %#" PRIxPTR "\n", (int)pid,
                address);
        return NULL;
    }
    const off_t begin = offset & ~(off_t)(PAGE - 1);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin);
    close(fd);
    *out_offset = (VkDeviceSize)(offset - begin);
    return page == MAP_FAILED ? NULL : page;
}

/* -- the device ------------------------------------------------------------------------------- */

struct engine {
    VkPhysicalDevice physical;
    uint32_t family;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
};

/* The first device with a family of queues that can do nothing but transfer. */
static struct engine find_engine(void) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    VkInstance instance;
    CHECK(vkCreateInstance(&info, NULL, &instance));
    VkPhysicalDevice devices[8];
    uint32_t device_count = 8;
    vkEnumeratePhysicalDevices(instance, &device_count, devices);
    for (uint32_t i = 0; i < device_count; i++) {
        VkQueueFamilyProperties families[16];
        uint32_t count = 16;
        vkGetPhysicalDeviceQueueFamilyProperties(devices[i], &count, families);
        for (uint32_t f = 0; f < count; f++) {
            const VkQueueFlags flags = families[f].queueFlags;
            if ((flags & VK_QUEUE_TRANSFER_BIT) &&
                !(flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT))) {
                return (struct engine){.physical = devices[i], .family = f};
            }
        }
    }
    fail("no device has a queue for transfers alone");
}

static void make_device(struct engine *e) {
    static const char *const extension = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = e->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = 1,
                                     .ppEnabledExtensionNames = &extension};
    CHECK(vkCreateDevice(e->physical, &info, NULL, &e->device));
    vkGetDeviceQueue(e->device, e->family, 0, &e->queue);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = e->family};
    CHECK(vkCreateCommandPool(e->device, &pool, NULL, &e->pool));
}

/* -- gates ------------------------------------------------------------------------------------- */

struct gate {
    void *page;
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkCommandBuffer commands;
};

static void import_page(const struct engine *e, struct gate *gate) {
    const VkExternalMemoryHandleTypeFlagBits type =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = type};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = &external,
                                     .size = PAGE,
                                     .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CHECK(vkCreateBuffer(e->device, &info, NULL, &gate->buffer));
    VkMemoryHostPointerPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    const PFN_vkGetMemoryHostPointerPropertiesEXT properties_of =
        (PFN_vkGetMemoryHostPointerPropertiesEXT)vkGetDeviceProcAddr(
            e->device, "vkGetMemoryHostPointerPropertiesEXT");
    CHECK(properties_of(e->device, type, gate->page, &host));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(e->device, gate->buffer, &needs);
    const uint32_t types = host.memoryTypeBits & needs.memoryTypeBits;
    if (!types) {
        fail("the device imports no host memory");
    }
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = type,
        .pHostPointer = gate->page};
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .pNext = &import,
                                           .allocationSize = PAGE,
                                           .memoryTypeIndex = (uint32_t)__builtin_ctz(types)};
    CHECK(vkAllocateMemory(e->device, &allocate, NULL, &gate->memory));
    CHECK(vkBindBufferMemory(e->device, gate->buffer, gate->memory, 0));
}

static void record(const struct engine *e, struct gate *gate, VkDeviceSize offset) {
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = e->pool,
                                              .commandBufferCount = 1};
    CHECK(vkAllocateCommandBuffers(e->device, &info, &gate->commands));
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(gate->commands, &begin));
    const uint32_t value = OPEN;
    vkCmdUpdateBuffer(gate->commands, gate->buffer, offset, sizeof value, &value);
    CHECK(vkEndCommandBuffer(gate->commands));
}

static bool take_gate(const struct engine *e, struct gate *gate, int connection, uint64_t address) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
        fail("SO_PEERCRED: %s", strerror(errno));
    }
    VkDeviceSize offset;
    gate->page = map_word(peer.pid, (uintptr_t)address, &offset);
    if (!gate->page) {
        return false;
    }
    import_page(e, gate);
    record(e, gate, offset);
    return true;
}

static void open_gate(const struct engine *e, const struct gate *gate) {
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &gate->commands};
    CHECK(vkQueueSubmit(e->queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(e->queue));
}

static void drop_gate(const struct engine *e, struct gate *gate) {
    if (gate->page) {
        vkFreeCommandBuffers(e->device, e->pool, 1, &gate->commands);
        vkDestroyBuffer(e->device, gate->buffer, NULL);
        vkFreeMemory(e->device, gate->memory, NULL);
        munmap(gate->page, PAGE);
    }
    *gate = (struct gate){0};
}

/* -- connections ------------------------------------------------------------------------------- */

/* False: the test has closed its end, or died. */
static bool serve(const struct engine *e, struct gate *gate, int connection) {
    uint64_t address;
    char word;
    if (!gate->page) {
        if (recv(connection, &address, sizeof address, MSG_WAITALL) != sizeof address) {
            return false;
        }
        return take_gate(e, gate, connection, address) &&
               send(connection, "i", 1, MSG_NOSIGNAL) == 1;
    }
    if (recv(connection, &word, 1, 0) != 1) {
        return false;
    }
    open_gate(e, gate);
    return send(connection, "d", 1, MSG_NOSIGNAL) == 1;
}

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >=
        sizeof address.sun_path) {
        fail("%s: too long for a socket's path", path);
    }
    unlink(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, MOST)) {
        fail("%s: %s", path, strerror(errno));
    }
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fail("takes the path of its socket");
    }
    struct engine engine = find_engine();
    make_device(&engine);
    struct pollfd polled[1 + MOST] = {{.fd = listen_at(argv[1]), .events = POLLIN}};
    struct gate gates[1 + MOST] = {0};
    for (nfds_t count = 1;;) {
        polled[0].events = count <= MOST ? POLLIN : 0;
        if (poll(polled, count, -1) < 0) {
            fail("poll: %s", strerror(errno));
        }
        for (nfds_t i = count - 1; i > 0; i--) {
            if (polled[i].revents && !serve(&engine, &gates[i], polled[i].fd)) {
                drop_gate(&engine, &gates[i]);
                close(polled[i].fd);
                count--;
                polled[i] = polled[count];
                gates[i] = gates[count];
                gates[count] = (struct gate){0};
            }
        }
        if (polled[0].revents) {
            const int fd = accept4(polled[0].fd, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0) {
                polled[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
            }
        }
    }
}
