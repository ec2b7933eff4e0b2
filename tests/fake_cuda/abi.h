/* What a kernel of the fake CUDA driver is: this stands between kernel.h and the driver.
 *
 * A "cubin" is an ELF shared object without undefined symbols. It has an int |fake_arch|, and for each
 * kernel NAME a function fake_cuda_kernel, which is called once for each thread of the grid, one after
 * the other; NAME_parameters, ended by a size of 0; and, if it likes, NAME_attributes. There are no
 * barriers: a thread sees what the threads before it have left in shared memory. */
#ifndef TESTS_FAKE_CUDA_ABI_H
#define TESTS_FAKE_CUDA_ABI_H

#include <stdint.h>

#define FAKE_CUDA_ARCH            90
#define FAKE_CUDA_PARAMETER_BYTES 32764u /* since CUDA 12.1, on Volta and later */
#define FAKE_CUDA_SHARED_BYTES    49152u
#define FAKE_CUDA_SHARED_OPTIN    232448u
#define FAKE_CUDA_BLOCK_THREADS   1024u
#define FAKE_CUDA_LATCHES         1024u
#define FAKE_CUDA_KEPT            65536u

struct fake_cuda_dim {
    uint32_t x, y, z;
};

struct fake_cuda_thread {
    struct fake_cuda_dim threadIdx, blockIdx, blockDim, gridDim;
    void *shared; /* noise at the beginning of each block: static bytes first, then dynamic ones */
    uint32_t shared_bytes;
    void (*fail)(int error);    /* ends the launch with that CUresult; does not return */
    void (*pause)(void);        /* for loops: does not return once the context is destroyed */
    volatile uint32_t *latches; /* words that a test has, too; or NULL */
    /* What a hostile kernel can do to its own context: */
    void *kept;       /* FAKE_CUDA_KEPT bytes, as those of a __device__ variable: zeros at first */
    int64_t *skew_ns; /* the context's later times are so much less */
    /* Runs it 100 ms after the launch has ended for everybody else; the last one that was asked for. */
    void (*later)(void (*run)(void *argument), void *argument);
};

struct fake_cuda_parameter {
    uint32_t offset, size;
};

struct fake_cuda_attributes {
    uint32_t max_threads, static_shared, max_dynamic_shared;
};

typedef void fake_cuda_kernel(const struct fake_cuda_thread *thread, const void *parameters);

#endif
