/* What devices there are, and what they can do. */
#include "fake_cuda.h"

#include <stdio.h>

static int count_devices(void) {
    return (int)fake_setting("FAKE_CUDA_DEVICES", 1);
}

bool fake_is_device(CUdevice device) {
    return device >= 0 && device < count_devices();
}

/* Returns without cuInit(), a place for the answer, or the device. */
#define ENTER(out, device)                                                                         \
    FAKE_CHECK(fake_check_driver());                                                               \
    FAKE_REQUIRE(out, INVALID_VALUE);                                                              \
    FAKE_REQUIRE(fake_is_device(device), INVALID_DEVICE)

CUresult fake_cuDriverGetVersion(int *version) {
    FAKE_REQUIRE(version, INVALID_VALUE);
    *version = (int)fake_setting("FAKE_CUDA_VERSION", 12080);
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetCount(int *count) {
    ENTER(count, 0);
    *count = count_devices();
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER(device, ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetName(char *name, int length, CUdevice device) {
    ENTER(name && length > 0, device);
    snprintf(name, (size_t)length, "Fake CUDA");
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    ENTER(uuid, device);
    *uuid = (CUuuid){{0xfa, 0xce, 0xcd, 0xa0, [15] = (unsigned char)device}};
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    ENTER(bytes, device);
    *bytes = fake_setting("FAKE_CUDA_MEMORY", 8ull << 30);
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    const struct {
        int attribute, value;
    } attributes[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, FAKE_CUDA_BLOCK_THREADS},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, FAKE_CUDA_SHARED_BYTES},
        {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, (int)fake_setting("FAKE_CUDA_PAGEABLE", 0)},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, (int)fake_setting("FAKE_CUDA_MODE", 0)},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0xfa},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, FAKE_CUDA_ARCH / 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, FAKE_CUDA_ARCH % 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, FAKE_CUDA_SHARED_OPTIN},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
         (int)fake_setting("FAKE_CUDA_READ_ONLY", 1)},
    };
    ENTER(value, device);
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}
