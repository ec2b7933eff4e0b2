/* The device: a CUDA context and its stream. */
#ifndef BHI_WORKER_CUDA_DEVICE_H
#define BHI_WORKER_CUDA_DEVICE_H

#include "base/cuda.h"
#include "worker/backend.h"

struct bhi_cuda_device {
    struct bhi_cuda_api api;
    uint32_t index;
    CUdevice device;
    CUcontext context;
    CUstream stream; /* all work, in order */
    uint32_t max_grid[3], max_block[3], max_threads, max_shared;
    bool registers_read_only; /* it reads host memory that is mapped for reading only */
    size_t granularity;       /* of device memory */
};

/* Calls cuInit(), which only a worker may do: CUDA does not survive a fork. On failure returns false
 * and *error: NO_DEVICE, UNSUPPORTED (an old driver lacks a function), OUT_OF_*, CUDA. */
bool bhi_cuda_load(struct bhi_cuda_api *api, const struct bhi_backend_config *config,
                   struct bhi_error *error);
/* Whatever it returns, bhi_cuda_device_fini() must follow. */
bool bhi_cuda_device_init(struct bhi_cuda_device *device, const struct bhi_backend_config *config,
                          struct bhi_error *error);
void bhi_cuda_device_fini(struct bhi_cuda_device *device);
/* What its memory is made as. */
CUmemAllocationProp bhi_cuda_properties(const struct bhi_cuda_device *device);
/* Describes all devices; |chosen| is the number of ours, UINT32_MAX: none. |out_pci| may be NULL. */
size_t bhi_cuda_device_messages(const struct bhi_cuda_api *api, uint32_t chosen,
                                struct bhi_msg_device *out, struct bhi_pci *out_pci,
                                size_t capacity);

#endif
