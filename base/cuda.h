/* The part of CUDA's driver API that we use, declared here: neither the toolkit nor a driver is
 * needed to build. Names, values and layouts are those of cuda.h; the driver keeps them (CUDA C++
 * Programming Guide, "Version and Compatibility"). */
#ifndef BHI_BASE_CUDA_H
#define BHI_BASE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUuuid {
    unsigned char bytes[16];
} CUuuid;

typedef enum CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_INVALID_SOURCE = 300,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

/* CUdevice_attribute */
enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2, /* and Y, Z */
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,  /* and Y, Z */
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20, /* 3: exclusive-process, 2: prohibited */
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
};

/* CUfunction_attribute */
enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

/* CUlimit */
enum {
    CU_LIMIT_STACK_SIZE = 0,
    CU_LIMIT_PRINTF_FIFO_SIZE = 1,
    CU_LIMIT_MALLOC_HEAP_SIZE = 2,
};

/* CUjit_option */
enum {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

/* CUpointer_attribute */
enum { CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9 };

#define CU_CTX_SCHED_YIELD           0x02u
#define CU_CTX_MAP_HOST              0x08u
#define CU_STREAM_NON_BLOCKING       0x01u
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x02u
#define CU_MEMHOSTREGISTER_READ_ONLY 0x08u
#define CU_GET_PROC_ADDRESS_DEFAULT  0u

/* CUmemAllocationType, CUmemAllocationHandleType, CUmemLocationType, CUmemAccess_flags,
 * CUmemAllocationGranularity_flags */
enum {
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
};

typedef struct CUmemLocation {
    int type, id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

/* CUDA(name, since, parameters): |since| is the version of CUDA whose meaning of the name is used,
 * which cuGetProcAddress() takes: 1000 * major + 10 * minor. */
#define BHI_CUDA_FUNCTIONS(CUDA)                                                                   \
    CUDA(cuInit, 2000, (unsigned flags))                                                           \
    CUDA(cuDriverGetVersion, 2020, (int *version))                                                 \
    CUDA(cuGetErrorName, 6000, (CUresult error, const char **name))                                \
    CUDA(cuGetErrorString, 6000, (CUresult error, const char **text))                              \
    CUDA(cuDeviceGetCount, 2000, (int *count))                                                     \
    CUDA(cuDeviceGet, 2000, (CUdevice * device, int ordinal))                                      \
    CUDA(cuDeviceGetName, 2000, (char *name, int length, CUdevice device))                         \
    CUDA(cuDeviceGetUuid, 11040, (CUuuid * uuid, CUdevice device))                                 \
    CUDA(cuDeviceGetAttribute, 2000, (int *value, int attribute, CUdevice device))                 \
    CUDA(cuDeviceTotalMem, 3020, (size_t *bytes, CUdevice device))                                 \
    CUDA(cuCtxCreate, 3020, (CUcontext * context, unsigned flags, CUdevice device))                \
    CUDA(cuCtxDestroy, 4000, (CUcontext context))                                                  \
    CUDA(cuCtxSetLimit, 3010, (int limit, size_t value))                                           \
    CUDA(cuCtxSynchronize, 2000, (void))                                                           \
    CUDA(cuMemGetInfo, 3020, (size_t *free, size_t *total))                                        \
    CUDA(cuStreamCreate, 2000, (CUstream * stream, unsigned flags))                                \
    CUDA(cuStreamDestroy, 4000, (CUstream stream))                                                 \
    CUDA(cuStreamQuery, 2000, (CUstream stream))                                                   \
    CUDA(cuStreamSynchronize, 2000, (CUstream stream))                                             \
    CUDA(cuStreamWriteValue64, 11070,                                                              \
         (CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags))                   \
    CUDA(cuEventCreate, 2000, (CUevent * event, unsigned flags))                                   \
    CUDA(cuEventDestroy, 4000, (CUevent event))                                                    \
    CUDA(cuEventRecord, 2000, (CUevent event, CUstream stream))                                    \
    CUDA(cuEventElapsedTime, 2000, (float *ms, CUevent start, CUevent end))                        \
    CUDA(cuModuleLoadDataEx, 2010,                                                                 \
         (CUmodule * module, const void *image, unsigned count, int *options, void **values))      \
    CUDA(cuModuleUnload, 2000, (CUmodule module))                                                  \
    CUDA(cuModuleGetFunction, 2000, (CUfunction * function, CUmodule module, const char *name))    \
    CUDA(cuFuncGetAttribute, 2020, (int *value, int attribute, CUfunction function))               \
    CUDA(cuFuncSetAttribute, 9000, (CUfunction function, int attribute, int value))                \
    CUDA(cuFuncGetParamInfo, 12040,                                                                \
         (CUfunction function, size_t index, size_t *offset, size_t *size))                        \
    CUDA(cuLaunchKernel, 4000,                                                                     \
         (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,             \
          CUstream stream, void **parameters, void **extra))                                       \
    CUDA(cuMemHostRegister, 6050, (void *pointer, size_t bytes, unsigned flags))                   \
    CUDA(cuMemHostUnregister, 4000, (void *pointer))                                               \
    CUDA(cuMemHostGetDevicePointer, 3020, (CUdeviceptr * out, void *pointer, unsigned flags))      \
    CUDA(cuMemGetAllocationGranularity, 10020,                                                     \
         (size_t *granularity, const CUmemAllocationProp *properties, int option))                 \
    CUDA(cuMemAddressReserve, 10020,                                                               \
         (CUdeviceptr * out, size_t bytes, size_t alignment, CUdeviceptr address,                  \
          unsigned long long flags))                                                               \
    CUDA(cuMemAddressFree, 10020, (CUdeviceptr address, size_t bytes))                             \
    CUDA(cuMemCreate, 10020,                                                                       \
         (CUmemGenericAllocationHandle * handle, size_t bytes,                                     \
          const CUmemAllocationProp *properties, unsigned long long flags))                        \
    CUDA(cuMemRelease, 10020, (CUmemGenericAllocationHandle handle))                               \
    CUDA(cuMemMap, 10020,                                                                          \
         (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,   \
          unsigned long long flags))                                                               \
    CUDA(cuMemUnmap, 10020, (CUdeviceptr address, size_t bytes))                                   \
    CUDA(cuMemSetAccess, 10020,                                                                    \
         (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count))         \
    CUDA(cuMemExportToShareableHandle, 10020,                                                      \
         (void *out, CUmemGenericAllocationHandle handle, int type, unsigned long long flags))     \
    CUDA(cuMemImportFromShareableHandle, 10020,                                                    \
         (CUmemGenericAllocationHandle * out, void *descriptor, int type))                         \
    CUDA(cuMemcpyDtoDAsync, 3020,                                                                  \
         (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                        \
    CUDA(cuMemcpyHtoDAsync, 3020,                                                                  \
         (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                        \
    CUDA(cuMemcpyDtoHAsync, 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))     \
    CUDA(cuMemsetD8Async, 3020,                                                                    \
         (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))                     \
    CUDA(cuMemsetD32Async, 3020, (CUdeviceptr to, unsigned value, size_t count, CUstream stream))

/* What the host uses besides: it shares its process, and CUDA's primary contexts, with others. */
#define BHI_CUDA_HOST_FUNCTIONS(CUDA)                                                              \
    CUDA(cuDevicePrimaryCtxRetain, 7000, (CUcontext * context, CUdevice device))                   \
    CUDA(cuDevicePrimaryCtxRelease, 11000, (CUdevice device))                                      \
    CUDA(cuCtxPushCurrent, 4000, (CUcontext context))                                              \
    CUDA(cuCtxPopCurrent, 4000, (CUcontext * context))                                             \
    CUDA(cuPointerGetAttribute, 4000, (void *out, int attribute, CUdeviceptr pointer))

/* cuGetProcAddress, since 12.0. *status is 0, 1: no such name, 2: no such name in |version|. */
typedef CUresult (*bhi_cuda_entry)(const char *name, void **out, int version, uint64_t flags,
                                   int *status);

#define BHI_CUDA_FIELD(name, since, parameters) CUresult(*name) parameters;
struct bhi_cuda_api {
    BHI_CUDA_FUNCTIONS(BHI_CUDA_FIELD)
};
struct bhi_cuda_host_api {
    BHI_CUDA_HOST_FUNCTIONS(BHI_CUDA_FIELD)
};
#undef BHI_CUDA_FIELD

/* Find all functions. Return the name of one that the driver does not have, and in *out_since the
 * version of CUDA that has it; or NULL. */
const char *bhi_cuda_find(struct bhi_cuda_api *api, bhi_cuda_entry entry, int *out_since);
const char *bhi_cuda_find_host(struct bhi_cuda_host_api *api, bhi_cuda_entry entry, int *out_since);

#endif
