/* The device of a worker for CUDA: driver calls that fail, and what is done between its steps. */
#include "faults.h"
#include "wrap.h"

#include "worker/cuda/backend.h"

#include <bulkhead/bulkhead.h>

static struct {
    bool making, importing; /* device memory */
    CUresult broken;        /* the context is, as by a kernel: every call answers that */
} cuda;

/* -- calls ------------------------------------------------------------------------------------ */

/* The driver's own functions. */
static struct bhi_cuda_api real;

/* X(name, parameters, arguments) for each function that a record or a start depends on. */
#define BREAKABLE(X)                                                                               \
    X(cuInit, (unsigned a), (a))                                                                   \
    X(cuDeviceGetCount, (int *a), (a))                                                             \
    X(cuCtxCreate, (CUcontext * a, unsigned b, CUdevice c), (a, b, c))                             \
    X(cuCtxSetLimit, (int a, size_t b), (a, b))                                                    \
    X(cuStreamCreate, (CUstream * a, unsigned b), (a, b))                                          \
    X(cuStreamSynchronize, (CUstream a), (a))                                                      \
    X(cuStreamWriteValue64, (CUstream a, CUdeviceptr b, uint64_t c, unsigned d), (a, b, c, d))     \
    X(cuEventCreate, (CUevent * a, unsigned b), (a, b))                                            \
    X(cuEventRecord, (CUevent a, CUstream b), (a, b))                                              \
    X(cuEventElapsedTime, (float *a, CUevent b, CUevent c), (a, b, c))                             \
    X(cuModuleLoadDataEx, (CUmodule * a, const void *b, unsigned c, int *d, void **e),             \
      (a, b, c, d, e))                                                                             \
    X(cuModuleGetFunction, (CUfunction * a, CUmodule b, const char *c), (a, b, c))                 \
    X(cuFuncGetAttribute, (int *a, int b, CUfunction c), (a, b, c))                                \
    X(cuFuncSetAttribute, (CUfunction a, int b, int c), (a, b, c))                                 \
    X(cuLaunchKernel,                                                                              \
      (CUfunction a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g,       \
       unsigned h, CUstream i, void **j, void **k),                                                \
      (a, b, c, d, e, f, g, h, i, j, k))                                                           \
    X(cuMemHostRegister, (void *a, size_t b, unsigned c), (a, b, c))                               \
    X(cuMemHostGetDevicePointer, (CUdeviceptr * a, void *b, unsigned c), (a, b, c))                \
    X(cuMemAddressReserve,                                                                         \
      (CUdeviceptr * a, size_t b, size_t c, CUdeviceptr d, unsigned long long e), (a, b, c, d, e)) \
    X(cuMemCreate,                                                                                 \
      (CUmemGenericAllocationHandle * a, size_t b, const CUmemAllocationProp *c,                   \
       unsigned long long d),                                                                      \
      (a, b, c, d))                                                                                \
    X(cuMemMap,                                                                                    \
      (CUdeviceptr a, size_t b, size_t c, CUmemGenericAllocationHandle d, unsigned long long e),   \
      (a, b, c, d, e))                                                                             \
    X(cuMemSetAccess, (CUdeviceptr a, size_t b, const CUmemAccessDesc *c, size_t d), (a, b, c, d)) \
    X(cuMemExportToShareableHandle,                                                                \
      (void *a, CUmemGenericAllocationHandle b, int c, unsigned long long d), (a, b, c, d))        \
    X(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle * a, void *b, int c),          \
      (a, b, c))                                                                                   \
    X(cuMemcpyDtoDAsync, (CUdeviceptr a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d))       \
    X(cuMemcpyHtoDAsync, (CUdeviceptr a, const void *b, size_t c, CUstream d), (a, b, c, d))       \
    X(cuMemcpyDtoHAsync, (void *a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d))             \
    X(cuMemsetD8Async, (CUdeviceptr a, unsigned char b, size_t c, CUstream d), (a, b, c, d))       \
    X(cuMemsetD32Async, (CUdeviceptr a, unsigned b, size_t c, CUstream d), (a, b, c, d))

/* What the call answers in place of the driver; CUDA_SUCCESS: nothing. */
static CUresult failure(void) {
    if (cuda.broken != CUDA_SUCCESS) {
        return cuda.broken;
    }
    switch (bhi_fault_vulkan(BHI_AT_start_cu, BHI_AT_cu)) {
    case 0:
        return CUDA_SUCCESS;
    case -4: /* lost */
        return cuda.broken = CUDA_ERROR_ILLEGAL_ADDRESS;
    case -1: /* fail */
        return bhi_faults.running ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

#define WRAPPER(name, parameters, arguments)                                                       \
    static CUresult break_##name parameters {                                                      \
        const CUresult fails = failure();                                                          \
        return fails != CUDA_SUCCESS ? fails : real.name arguments;                                \
    }
BREAKABLE(WRAPPER)

static CUresult break_cuStreamQuery(CUstream stream) {
    const CUresult result = cuda.broken != CUDA_SUCCESS ? cuda.broken : real.cuStreamQuery(stream);
    return result == CUDA_SUCCESS && lies(waited) ? CUDA_ERROR_UNKNOWN : result;
}

WRAP(const char *, bhi_cuda_find, struct bhi_cuda_api *api, bhi_cuda_entry entry, int *out_since) {
    const char *missing = __real_bhi_cuda_find(api, entry, out_since);
    if (missing) {
        return missing;
    }
    real = *api;
#define PUT(name, parameters, arguments) api->name = break_##name;
    BREAKABLE(PUT)
    PUT(cuStreamQuery, , )
    return NULL;
}

/* -- buffers ---------------------------------------------------------------------------------- */

WRAP(struct bhi_cuda_buffer *, bhi_cuda_buffer_attach, uint64_t id, int fd, uint64_t size,
     enum bhi_attach access) {
    const bool fails = lies(attach);
    struct bhi_cuda_buffer *buffer = __real_bhi_cuda_buffer_attach(id, fd, size, access);
    if (buffer && fails) {
        BHI_ERROR(&buffer->error, BH_REASON_HOST_MEMORY, "a buffer");
    }
    return buffer;
}

/* -- device memory ---------------------------------------------------------------------------- */

WRAP(struct bhi_cuda_buffer *, bhi_cuda_buffer_make, const struct bhi_cuda_device *device,
     uint64_t id, uint64_t size, int *out_fd) {
    passes(make);
    cuda.making = true;
    struct bhi_cuda_buffer *buffer = __real_bhi_cuda_buffer_make(device, id, size, out_fd);
    cuda.making = false;
    return buffer;
}

WRAP(struct bhi_cuda_buffer *, bhi_cuda_buffer_import, const struct bhi_cuda_device *device,
     uint64_t id, int fd, uint64_t size) {
    cuda.importing = true;
    struct bhi_cuda_buffer *buffer = __real_bhi_cuda_buffer_import(device, id, fd, size);
    cuda.importing = false;
    return buffer;
}

WRAP(CUresult, bhi_cuda_memory_make, const struct bhi_cuda_device *device,
     struct bhi_cuda_memory *memory, uint64_t bytes, int fd, const char **out_call) {
    *out_call = fd < 0 ? "cuMemCreate" : "cuMemImportFromShareableHandle";
    if (((cuda.making || cuda.importing) && lies(make_full)) || (cuda.importing && lies(import))) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return __real_bhi_cuda_memory_make(device, memory, bytes, fd, out_call);
}

WRAP(int, bhi_cuda_memory_export, const struct bhi_cuda_device *device,
     const struct bhi_cuda_memory *memory, CUresult *out_result) {
    passes(made);
    const bool small = lies(lie_small), far = lies(lie_far);
    if (small || far) {
        CUmemAllocationProp properties = bhi_cuda_properties(device);
        properties.location.id += far;
        struct bhi_cuda_memory other = {0};
        const size_t bytes = small ? device->granularity : memory->bytes;
        if (real.cuMemCreate(&other.handle, bytes, &properties, 0) == CUDA_SUCCESS) {
            const int fd = __real_bhi_cuda_memory_export(device, &other, out_result);
            (void)real.cuMemRelease(other.handle);
            return fd;
        }
    }
    return __real_bhi_cuda_memory_export(device, memory, out_result);
}

WRAP(CUresult, bhi_cuda_buffer_clear, const struct bhi_cuda_device *device,
     struct bhi_cuda_buffer *buffer, const char **out_call) {
    passes(clear);
    if (lies(clear_fails)) {
        *out_call = "cuMemsetD8Async";
        return CUDA_ERROR_UNKNOWN;
    }
    const CUresult result = __real_bhi_cuda_buffer_clear(device, buffer, out_call);
    passes(cleared);
    return result;
}

/* -- kernels and records ---------------------------------------------------------------------- */

WRAP(struct bhi_cuda_kernel *, bhi_cuda_kernel_new, const struct bhi_msg_kernel_create *info,
     const void *code) {
    return lies(kernel_create) ? NULL : __real_bhi_cuda_kernel_new(info, code);
}

WRAP(bool, bhi_cuda_kernel_load, const struct bhi_cuda_device *device,
     struct bhi_cuda_kernel *kernel, struct bhi_error *error) {
    passes(compile);
    return __real_bhi_cuda_kernel_load(device, kernel, error);
}

WRAP(bool, bhi_cuda_enqueue, struct bhi_cuda_backend *backend, const struct bhi_lane_record *record,
     struct bhi_error *error) {
    const bool good = __real_bhi_cuda_enqueue(backend, record, error);
    if (good) {
        passes(submitted);
    }
    return good;
}
