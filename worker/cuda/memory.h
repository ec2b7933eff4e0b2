/* Device memory: made here or by another worker, mapped at an address of its own. A kernel has raw
 * pointers, so it is mapped for reading only, except while a submission that writes it is under way
 * (access.h). */
#ifndef BHI_WORKER_CUDA_MEMORY_H
#define BHI_WORKER_CUDA_MEMORY_H

#include "worker/cuda/device.h"

struct bhi_cuda_memory {
    CUdeviceptr address; /* 0: none */
    size_t bytes;        /* a multiple of the granularity */
    CUmemGenericAllocationHandle handle;
    bool writable; /* now */
};

/* Makes at least |bytes|, or with |fd| >= 0 takes what another worker has made, which must be as large;
 * |fd| stays the caller's. Maps it for reading. *out_call is the call that failed. */
CUresult bhi_cuda_memory_make(const struct bhi_cuda_device *device, struct bhi_cuda_memory *memory,
                              uint64_t bytes, int fd, const char **out_call);
/* Returns a descriptor for other workers, or -1. */
int bhi_cuda_memory_export(const struct bhi_cuda_device *device,
                           const struct bhi_cuda_memory *memory, CUresult *out_result);
CUresult bhi_cuda_memory_allow(const struct bhi_cuda_device *device, struct bhi_cuda_memory *memory,
                               bool writable);
void bhi_cuda_memory_free(const struct bhi_cuda_device *device, struct bhi_cuda_memory *memory);

#endif
