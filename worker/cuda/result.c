#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>

bool bhi_cuda_is_fault(CUresult result) {
    /* 700 to 720 are what kernels do; LAUNCH_OUT_OF_RESOURCES and what follows 702 in the list up to
     * 713 are mistakes of the caller, which end nothing. */
    return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_ASSERT ||
           (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

const char *bhi_cuda_name(const struct bhi_cuda_api *api, CUresult result) {
    const char *name = NULL;
    return api->cuGetErrorName && api->cuGetErrorName(result, &name) == CUDA_SUCCESS && name
               ? name
               : "an unnamed CUresult";
}

void bhi_error_cuda(struct bhi_error *error, const struct bhi_cuda_api *api, CUresult result,
                    const char *call) {
    bh_status status = BH_CUDA;
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        status = BH_OUT_OF_DEVICE_MEMORY;
    } else if (bhi_cuda_is_fault(result)) {
        status = BH_DEVICE_FAULT;
    }
    BHI_ERROR(error, BH_REASON_NONE, .status = status, .value = (uint64_t)result,
              .text = BHI_SAY("%s: %s", call, bhi_cuda_name(api, result)));
}
