#include "worker/vulkan/reserve.h"

#include "worker/error.h"
#include "worker/sandbox/driver.h"
#include "worker/vulkan/result.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 8

/* Anonymous files that can still be extended, with descriptor and length. All files from the
 * supervisor are sealed. */
struct files {
    unsigned count;
    int fd[FILES];
    uint64_t size[FILES];
};

static bool length_of(int fd, uint64_t *out) {
    struct stat status;
    const bool known = fstat(fd, &status) == 0 && status.st_size >= 0;
    *out = known ? (uint64_t)status.st_size : 0;
    return known;
}

static void find_files(struct files *files) {
    struct rlimit limit = {.rlim_cur = 256};
    files->count = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    const int end = limit.rlim_cur > 1024 ? 1024 : (int)limit.rlim_cur;
    for (int fd = 0; fd < end && files->count < FILES; fd++) {
        const int seals = fcntl(fd, F_GET_SEALS);
        if (seals >= 0 && !(seals & (F_SEAL_GROW | F_SEAL_SEAL)) &&
            length_of(fd, &files->size[files->count])) {
            files->fd[files->count++] = fd;
        }
    }
}

/* Allocates all of the file's memory at once and frees it again: the driver does not shrink the
 * file. */
static VkResult take_all(struct bhi_vk_device *device) {
    for (uint32_t type = 0; type < device->memory.memoryTypeCount; type++) {
        if (!(device->memory.memoryTypes[type].propertyFlags &
              VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) {
            continue;
        }
        const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                               .allocationSize = BHI_DRIVER_FILE_BYTES,
                                               .memoryTypeIndex = type};
        VkDeviceMemory memory = VK_NULL_HANDLE;
        VkResult result = device->api.AllocateMemory(device->device, &allocate, NULL, &memory);
        if (result == VK_SUCCESS) {
            device->api.FreeMemory(device->device, memory, NULL);
        }
        return result;
    }
    return VK_ERROR_FEATURE_NOT_PRESENT;
}

bool bhi_vk_reserve(struct bhi_vk_device *device, struct bhi_error *error) {
    struct files files;
    if (!device->is_cpu) {
        return true;
    }
    find_files(&files);
    if (files.count == 0) {
        return true;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < BHI_DRIVER_FILE_MOST) {
        BHI_ERROR(error, BH_REASON_STEP, "let the driver make its files",
                  .text = "the host's RLIMIT_FSIZE (ulimit -f) is too low",
                  .value = BHI_DRIVER_FILE_MOST, .limit = limit.rlim_cur);
        return false;
    }
    VkResult result = take_all(device);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkAllocateMemory (the driver's memory file)");
        return false;
    }
    for (unsigned i = 0; i < files.count; i++) {
        uint64_t size;
        if (!length_of(files.fd[i], &size) || size <= files.size[i]) {
            continue; /* not from this driver */
        }
        if (size < BHI_DRIVER_FILE_BYTES) {
            BHI_ERROR(error, BH_REASON_STEP, "use the driver's memory file, which is too short",
                      .value = size, .limit = BHI_DRIVER_FILE_BYTES);
            return false;
        }
        if (fcntl(files.fd[i], F_ADD_SEALS, BHI_DRIVER_FILE_SEALS) != 0) {
            BHI_ERROR(error, BH_REASON_STEP, "seal the driver's memory file", .sys_errno = errno);
            return false;
        }
    }
    return true;
}

bool bhi_vk_reserve_code(struct bhi_vk_device *device, struct bhi_error *error) {
    for (int fd = 0; device->is_cpu && fd < 256; fd++) {
        uint64_t size;
        /* The driver's file was made without MFD_ALLOW_SEALING; all files of ours and the
         * supervisor's allow it. */
        if (fcntl(fd, F_GET_SEALS) == F_SEAL_SEAL && length_of(fd, &size) && size > 0 &&
            size < BHI_DRIVER_CODE_BYTES && ftruncate(fd, (off_t)BHI_DRIVER_CODE_BYTES) != 0) {
            BHI_ERROR(error, BH_REASON_STEP, "make the file of the driver's code longer",
                      .sys_errno = errno);
            return false;
        }
    }
    return true;
}
