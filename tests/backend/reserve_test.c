/* A driver that keeps its memory in a file of its own: the file gets its length once, and sealed.
 * The driver is a fake, so that it is tested with every Mesa. */
#include "rig.h"
#include "worker/sandbox/driver.h"
#include "worker/vulkan/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake {
    int file;          /* -1: it has none */
    VkDeviceSize most; /* it does not make it longer than that */
    unsigned allocated, freed;
} fake;

static VKAPI_ATTR VkResult VKAPI_CALL fake_allocate(VkDevice device,
                                                    const VkMemoryAllocateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkDeviceMemory *memory) {
    (void)device, (void)callbacks;
    const VkDeviceSize size = info->allocationSize < fake.most ? info->allocationSize : fake.most;
    fake.allocated++;
    *memory = (VkDeviceMemory)(uintptr_t)&fake;
    if (fake.file >= 0) {
        BHT_EQ(ftruncate(fake.file, (off_t)size + 4096), 0);
    }
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL fake_free(VkDevice device, VkDeviceMemory memory,
                                            const VkAllocationCallbacks *callbacks) {
    (void)device, (void)memory, (void)callbacks;
    fake.freed++;
}

static bool reserve(int file, VkDeviceSize most, bool is_cpu, struct bhi_error *error) {
    static struct bhi_vk_device device;
    fake = (struct fake){.file = file, .most = most};
    memset(&device, 0, sizeof device);
    device.is_cpu = is_cpu;
    device.api.AllocateMemory = fake_allocate;
    device.api.FreeMemory = fake_free;
    device.memory.memoryTypeCount = 1;
    device.memory.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    memset(error, 0, sizeof *error);
    return bhi_vk_reserve(&device, error);
}

static int new_file(void) {
    int file = memfd_create("allocation fd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    BHT_GE(file, 0);
    return file;
}

TEST(it_gets_its_length_and_is_sealed) {
    struct bhi_error error;
    struct stat status;
    int file = new_file();
    int another = new_file();
    BHT_TRUE(reserve(file, UINT64_MAX, true, &error));
    BHT_EQ(fake.allocated, 1);
    BHT_EQ(fake.freed, 1);
    BHT_EQ(fstat(file, &status), 0);
    BHT_GE((uint64_t)status.st_size, BHI_DRIVER_FILE_BYTES);
    BHT_EQ(status.st_blocks, 0); /* no page of it exists */
    BHT_EQ(fcntl(file, F_GET_SEALS), BHI_DRIVER_FILE_SEALS);
    BHT_EQ(ftruncate(file, status.st_size + 4096), -1);
    BHT_EQ(errno, EPERM);
    BHT_EQ(fcntl(another, F_GET_SEALS), 0); /* what is not the driver's is left alone */
    close(file);
    close(another);
}

TEST(nothing_to_do) {
    struct bhi_error error;
    BHT_TRUE(reserve(-1, UINT64_MAX, true, &error)); /* Mesa 22: no file */
    BHT_EQ(fake.allocated, 0);
    int file = new_file();
    BHT_TRUE(reserve(file, UINT64_MAX, false, &error)); /* a GPU */
    BHT_EQ(fake.allocated, 0);
    close(file);
}

TEST(too_short) {
    struct bhi_error error;
    int file = new_file();
    BHT_TRUE(!reserve(file, 1u << 20, true, &error));
    BHT_EQ(error.told.reason, BH_REASON_STEP);
    close(file);
}

/* A host with a small `ulimit -f`: named, and no SIGXFSZ. */
TEST(file_size_limit) {
    pid_t pid = fork();
    if (pid == 0) {
        struct bhi_error error;
        const struct rlimit small = {4096, 4096};
        setrlimit(RLIMIT_FSIZE, &small);
        bool good = reserve(new_file(), UINT64_MAX, true, &error);
        _exit(!good && fake.allocated == 0 && strstr(bhi_error_line(&error), "RLIMIT_FSIZE") ? 0
                                                                                             : 1);
    }
    int status;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_TRUE(WIFEXITED(status));
    BHT_EQ(WEXITSTATUS(status), 0);
}
