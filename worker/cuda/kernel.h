/* Kernels: a module image and one of its entry points. Loaded at first use. */
#ifndef BHI_WORKER_CUDA_KERNEL_H
#define BHI_WORKER_CUDA_KERNEL_H

#include "base/list.h"
#include "ipc/commands.h"
#include "worker/cuda/device.h"
#include "worker/error.h"

#define BHI_CUDA_PARAMETERS 256u
#define BHI_CUDA_PUSH_BYTES 4096u

struct bhi_cuda_kernel {
    uint64_t id;
    char name[64], entry[256]; /* |name| is the caller's, for messages */
    uint8_t *image;            /* with a NUL behind it, as PTX needs */
    size_t image_bytes;
    struct bhi_error error; /* why it can never be loaded */
    CUmodule module;        /* NULL: not loaded yet */
    CUfunction function;
    struct bhi_cuda_parameter {
        uint32_t offset, size; /* in the kernel's own block of parameters */
    } parameters[BHI_CUDA_PARAMETERS];
    uint32_t parameter_count;
    uint32_t max_threads, static_shared, dynamic_shared; /* the last: what it is allowed now */
    bool has_run;
    struct bhi_cuda_kernel *next_reflected;
};

/* Copies |code|. Returns NULL without memory. */
struct bhi_cuda_kernel *bhi_cuda_kernel_new(const struct bhi_msg_kernel_create *info,
                                            const void *code);
/* Loads the module, if it is not loaded: on some drivers that waits for all that runs. Returns false and
 * *error if it is not good. */
bool bhi_cuda_kernel_load(const struct bhi_cuda_device *device, struct bhi_cuda_kernel *kernel,
                          struct bhi_error *error);
void bhi_cuda_kernel_free(const struct bhi_cuda_device *device, struct bhi_cuda_kernel *kernel);
/* How messages name it. */
const char *bhi_cuda_kernel_label(const struct bhi_cuda_kernel *kernel);
/* Are grid, block and shared memory within what device and kernel allow? */
bool bhi_cuda_kernel_fits(const struct bhi_cuda_device *device,
                          const struct bhi_cuda_kernel *kernel,
                          const struct bhi_cmd_dispatch *dispatch, struct bhi_error *error);
/* Where each parameter's value is: bound[i] is what a binding gives for it, or NULL. The others are in
 * the push bytes, in order, each at a multiple of its alignment: the lowest bit of its size, at most 16.
 * Returns false and *error if the push bytes are not as many. */
bool bhi_cuda_kernel_place(const struct bhi_cuda_kernel *kernel, const uint64_t *const *bound,
                           const uint8_t *push, uint32_t push_bytes, const void **out_values,
                           struct bhi_error *error);

#endif
