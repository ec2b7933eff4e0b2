/* NVRTC, NVIDIA's compiler of CUDA C++: finding its library. A zygote of its own loads it, and forks
 * compilers, so nobody else's processes have its 60 MiB and more. */
#ifndef BHI_WORKER_SANDBOX_NVRTC_H
#define BHI_WORKER_SANDBOX_NVRTC_H

#include "worker/error.h"

#define BHI_NVRTC_PACKAGE                                                                          \
    "NVIDIA's package cuda-nvrtc (Debian: libnvrtc11.2 in non-free; Python: nvidia-cuda-nvrtc); "  \
    "if it is "                                                                                    \
    "elsewhere, BULKHEAD_NVRTC names the file"

/* Loads libnvrtc.so, and the library of its builtins beside it, which it would open when it compiles.
 * Looks for the file that the variable BULKHEAD_NVRTC names; without it, in lib64 and lib of CUDA_HOME
 * and CUDA_PATH; where the dynamic linker finds it; and in /usr/local/cuda. Returns what dlopen
 * returns; NULL with |failure|. */
void *bhi_nvrtc_load(struct bhi_error *failure);

#endif
