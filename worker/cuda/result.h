/* Turns a CUresult into an error of the worker. */
#ifndef BHI_WORKER_CUDA_RESULT_H
#define BHI_WORKER_CUDA_RESULT_H

#include "base/cuda.h"
#include "worker/error.h"

#include <stdbool.h>

/* Overwrites *error: |call| has answered |result|. The status follows from it: OUT_OF_DEVICE_MEMORY,
 * DEVICE_FAULT, else CUDA. */
void bhi_error_cuda(struct bhi_error *error, const struct bhi_cuda_api *api, CUresult result,
                    const char *call);
/* Did a kernel end its context? Every later call answers the same. */
bool bhi_cuda_is_fault(CUresult result);
/* The driver's name of a result, "CUDA_ERROR_ILLEGAL_ADDRESS". */
const char *bhi_cuda_name(const struct bhi_cuda_api *api, CUresult result);

#endif
