/* GLSL and HLSL to SPIR-V, with shaderc and SPIRV-Tools' optimiser. Reads no file. */
#ifndef BHI_WORKER_COMPILER_GLSL_H
#define BHI_WORKER_COMPILER_GLSL_H

#include "ipc/compile.h"
#include "worker/backend.h"
#include "worker/compiler/source.h"
#include <stdbool.h>
#include <stdint.h>

struct shaderc_compiler;

struct shaderc_compiler *bhi_glsl_compiler_create(void); /* NULL: out of memory */
void bhi_glsl_compiler_destroy(struct shaderc_compiler *compiler);

/* Compiles a compute shader. Fills in |answer|, and writes the module to |code|, which has |room|
 * bytes, if it fits. Returns false if there is no answer; |error| says why. */
bool bhi_glsl_compile(struct shaderc_compiler *compiler, const struct bhi_glsl *glsl,
                      struct bhi_compile_answer *answer, void *code, uint64_t room,
                      struct bhi_error *error);

#endif
