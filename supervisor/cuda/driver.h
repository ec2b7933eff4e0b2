/* CUDA in the host's own process, where others may use it, too: libcuda.so.1, loaded when a caller asks for
 * what needs it (bulkhead/cuda.h). Workers have their own (worker/cuda). */
#ifndef BHI_SUPERVISOR_CUDA_DRIVER_H
#define BHI_SUPERVISOR_CUDA_DRIVER_H

#include "base/cuda.h"

#include <bulkhead/bulkhead.h>

struct bhi_host_cuda {
    struct bhi_cuda_api api;
    struct bhi_cuda_host_api host;
};

/* *out_cuda: for ever. Loads and initialises it, if nobody has. Details begin with |call|. */
bh_status bhi_host_cuda_load(const struct bhi_host_cuda **out_cuda, const char *call,
                             bh_detail *detail);
/* Fails |call| because CUDA's |function| has returned |result|. */
bh_status bhi_host_cuda_fail(const struct bhi_host_cuda *cuda, CUresult result,
                             const char *function, const char *call, bh_detail *detail);
/* Finds the GPU |uuid|, which the message calls |name|. */
bh_status bhi_host_cuda_find(const struct bhi_host_cuda *cuda, const uint8_t uuid[16],
                             const char *name, CUdevice *out_device, int *out_number,
                             const char *call, bh_detail *detail);
/* Makes the primary context of |device| current for this thread, and keeps it, until bhi_host_cuda_leave. */
bh_status bhi_host_cuda_enter(const struct bhi_host_cuda *cuda, CUdevice device, const char *call,
                              bh_detail *detail);
void bhi_host_cuda_leave(const struct bhi_host_cuda *cuda, CUdevice device);

#endif
