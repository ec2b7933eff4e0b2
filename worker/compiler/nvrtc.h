/* CUDA C++ to PTX, with NVRTC, which the zygote has loaded (worker/sandbox/nvrtc.h): nothing of it is
 * needed to build. Reads no file. */
#ifndef BHI_WORKER_COMPILER_NVRTC_H
#define BHI_WORKER_COMPILER_NVRTC_H

#include "ipc/compile.h"
#include "worker/backend.h"
#include "worker/compiler/source.h"
#include <stdbool.h>
#include <stdint.h>

/* Compiles a source with one of its kernels as the entry point. |library| is what dlopen has
 * returned. Fills in |answer|, and writes the PTX to |code|, which has |room| bytes, if it fits.
 * Returns false if there is no answer; |error| says why. */
bool bhi_nvrtc_compile(void *library, const struct bhi_glsl *source,
                       struct bhi_compile_answer *answer, char *code, uint64_t room,
                       struct bhi_error *error);

#endif
