/* Optimising SPIR-V. The optimiser is a C++ library without a C interface. */
#ifndef BHI_WORKER_COMPILER_OPTIMIZE_H
#define BHI_WORKER_COMPILER_OPTIMIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As spirv-opt -O, except that unused bindings, specialization constants and names stay: they are
 * the kernel's interface. *out_code is malloc'ed. Returns false if optimising fails; the caller's
 * module is unchanged. */
bool bhi_optimize(const uint32_t *code, size_t words, uint32_t **out_code, size_t *out_words);

#ifdef __cplusplus
}
#endif

#endif
