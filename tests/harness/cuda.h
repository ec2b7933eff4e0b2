/* What the fixture does where the tests run on the fake CUDA driver (tests/fake_cuda). */
#ifndef BHT_CUDA_H
#define BHT_CUDA_H

#include "fixture.h"

/* The driver for this test, unless it has installed one. */
void cuda_install_once(void);
/* The device that is meant: |device| may be NULL, or a number. */
const char *cuda_device(const char *device);
/* The kernel of tests/harness/cuda of that name. What is said of SPIR-V in the options is left out. */
bh_kernel *cuda_kernel(bh_context *context, const char *name, const bh_kernel_options *options);
/* The words that kernels have as latches[word]. */
uint32_t cuda_latch(size_t word);
void cuda_set_latch(size_t word, uint32_t value);

#endif
