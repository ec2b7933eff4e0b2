#include "supervisor/cuda/driver.h"
#include "base/detail.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bhi_host_cuda driver; /* lock, until |found| */
static bool found;                  /* lock */

static bh_status refuse(const char *call, const char *why, bh_detail *detail) {
    return BHI_FAIL(detail, call, BH_REASON_NO_HOST_CUDA, .text = why);
}

/* Lock held. */
static bh_status find(const char *call, bh_detail *detail) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return refuse(call, dlerror(), detail);
    }
    const bhi_cuda_entry entry = (bhi_cuda_entry)dlsym(library, "cuGetProcAddress_v2");
    int since = 12000;
    const char *missing = entry ? bhi_cuda_find(&driver.api, entry, &since) : "cuGetProcAddress_v2";
    missing = missing ? missing : bhi_cuda_find_host(&driver.host, entry, &since);
    if (missing) { /* the library stays: a driver is not for unloading */
        return refuse(call,
                      BHI_SAY("its driver has no %s: CUDA %d.%d or later does", missing,
                              since / 1000, since % 1000 / 10),
                      detail);
    }
    found = true;
    return BH_OK;
}

bh_status bhi_host_cuda_load(const struct bhi_host_cuda **out_cuda, const char *call,
                             bh_detail *detail) {
    pthread_mutex_lock(&lock);
    bh_status status = found ? BH_OK : find(call, detail);
    if (status == BH_OK) { /* again and again: a fork ends it */
        const CUresult result = driver.api.cuInit(0);
        if (result == CUDA_ERROR_NOT_INITIALIZED) {
            status = refuse(call,
                            "it began before a fork, which it does not survive: start processes by "
                            "exec or multiprocessing's 'spawn'",
                            detail);
        } else if (result != CUDA_SUCCESS) {
            const char *name = NULL;
            (void)driver.api.cuGetErrorName(result, &name);
            status =
                refuse(call, BHI_SAY("cuInit: %s (%d)", name ? name : "?", (int)result), detail);
        }
    }
    pthread_mutex_unlock(&lock);
    *out_cuda = &driver;
    return status;
}

bh_status bhi_host_cuda_fail(const struct bhi_host_cuda *cuda, CUresult result,
                             const char *function, const char *call, bh_detail *detail) {
    const char *name = NULL, *text = NULL;
    (void)cuda->api.cuGetErrorName(result, &name);
    (void)cuda->api.cuGetErrorString(result, &text);
    return BHI_FAIL(detail, call, BH_REASON_HOST_CUDA, function, .value = (uint64_t)result,
                    .status = result == CUDA_ERROR_OUT_OF_MEMORY ? BH_NO_MEMORY : BH_OK,
                    .text = BHI_SAY("%s (%d): %s", name ? name : "an unknown error", (int)result,
                                    text ? text : "?"));
}

bh_status bhi_host_cuda_find(const struct bhi_host_cuda *cuda, const uint8_t uuid[16],
                             const char *name, CUdevice *out_device, int *out_number,
                             const char *call, bh_detail *detail) {
    int count = 0;
    CUresult result = cuda->api.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) {
        return bhi_host_cuda_fail(cuda, result, "cuDeviceGetCount", call, detail);
    }
    for (int number = 0; number < count; number++) {
        CUuuid there;
        if (cuda->api.cuDeviceGet(out_device, number) == CUDA_SUCCESS &&
            cuda->api.cuDeviceGetUuid(&there, *out_device) == CUDA_SUCCESS &&
            memcmp(there.bytes, uuid, sizeof there.bytes) == 0) {
            *out_number = number;
            return BH_OK;
        }
    }
    return BHI_FAIL(detail, call, BH_REASON_GPU_HIDDEN, name);
}

bh_status bhi_host_cuda_enter(const struct bhi_host_cuda *cuda, CUdevice device, const char *call,
                              bh_detail *detail) {
    CUcontext context;
    CUresult result = cuda->host.cuDevicePrimaryCtxRetain(&context, device);
    if (result != CUDA_SUCCESS) {
        return bhi_host_cuda_fail(cuda, result, "cuDevicePrimaryCtxRetain", call, detail);
    }
    result = cuda->host.cuCtxPushCurrent(context);
    if (result != CUDA_SUCCESS) {
        (void)cuda->host.cuDevicePrimaryCtxRelease(device);
        return bhi_host_cuda_fail(cuda, result, "cuCtxPushCurrent", call, detail);
    }
    return BH_OK;
}

void bhi_host_cuda_leave(const struct bhi_host_cuda *cuda, CUdevice device) {
    CUcontext context;
    (void)cuda->host.cuCtxPopCurrent(&context);
    (void)cuda->host.cuDevicePrimaryCtxRelease(device);
}
