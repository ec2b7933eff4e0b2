/* What devices there are, and what they can do. */
#include "fake_cuda.h"

#include <stdio.h>

static int count_devices(void) {
    return (int)fake_setting("FAKE_CUDA_DEVICES", 1);
}

bool fake_is_device(CUdevice device) {
    return device >= 0 && device < count_devices();
}

static CUresult check(const void *out, CUdevice device) {
    if (!fake_is_initialized()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (!out) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return fake_is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult fake_cuDriverGetVersion(int *version) {
    if (!version) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = (int)fake_setting("FAKE_CUDA_VERSION", 12080);
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetCount(int *count) {
    if (!fake_is_initialized()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (!count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = count_devices();
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGet(CUdevice *device, int ordinal) {
    CUresult result = check(device, ordinal);
    if (result == CUDA_SUCCESS) {
        *device = ordinal;
    }
    return result;
}

CUresult fake_cuDeviceGetName(char *name, int length, CUdevice device) {
    CUresult result = check(name, device);
    if (result == CUDA_SUCCESS && length <= 0) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        snprintf(name, (size_t)length, "Fake CUDA");
    }
    return result;
}

CUresult fake_cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    CUresult result = check(uuid, device);
    if (result == CUDA_SUCCESS) {
        *uuid = (CUuuid){{0xfa, 0xce, 0xcd, 0xa0}};
        uuid->bytes[15] = (unsigned char)device;
    }
    return result;
}

CUresult fake_cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    static const struct {
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
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0xfa},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, FAKE_CUDA_ARCH / 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, FAKE_CUDA_ARCH % 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, FAKE_CUDA_SHARED_OPTIN},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
    };
    CUresult result = check(value, device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (attributes[i].attribute != attribute) {
            continue;
        }
        *value = attributes[i].value;
        if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) {
            *value = (int)fake_setting("FAKE_CUDA_MODE", 0);
        } else if (attribute == CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED) {
            *value = (int)fake_setting("FAKE_CUDA_READ_ONLY", 1);
        } else if (attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) {
            *value = device;
        }
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    CUresult result = check(bytes, device);
    if (result == CUDA_SUCCESS) {
        *bytes = fake_setting("FAKE_CUDA_MEMORY", 8ull << 30);
    }
    return result;
}
