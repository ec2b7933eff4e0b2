/* Buffers: memory of the device, or of the host. A kernel never gets host memory for writing (C1): what
 * it writes goes to a stage, device memory of as many bytes, and is copied back when it has ended well.
 * What it reads is mapped and registered for reading only, or staged where a device cannot do that. */
#ifndef BHI_WORKER_CUDA_BUFFER_H
#define BHI_WORKER_CUDA_BUFFER_H

#include "worker/cuda/memory.h"
#include "worker/error.h"

struct bhi_cuda_span {
    uint64_t begin, end; /* bytes; empty: none */
};

struct bhi_cuda_buffer {
    uint64_t id, size;
    struct bhi_error error; /* not OK: it cannot be used */
    bool writable;          /* the worker may write it */
    bool in_host;
    struct bhi_cuda_memory memory; /* the buffer, or the stage of host memory */
    /* Of host memory. */
    void *reads, *writes; /* mappings of it; |writes| NULL unless writable */
    size_t mapped;
    CUdeviceptr registered; /* the device's address of |reads|; 0: not yet */
    bool copied;            /* a large copy from the device has gone there */
    bool pinned;            /* |writes| is registered: no kernel may run */
    /* Of the record that is being recorded (record.c). */
    uint64_t staged;                   /* its number: the stage stands for the buffer in it */
    uint64_t wanted;                   /* its number: it writes |memory| */
    struct bhi_cuda_span valid, dirty; /* of the stage: what is there, what has to go back */
};

/* Returns NULL without memory for the entry. Otherwise the buffer's error may be set. Take |fd| over. */
struct bhi_cuda_buffer *bhi_cuda_buffer_attach(uint64_t id, int fd, uint64_t size,
                                               enum bhi_attach access);
struct bhi_cuda_buffer *bhi_cuda_buffer_make(const struct bhi_cuda_device *device, uint64_t id,
                                             uint64_t size, int *out_fd);
struct bhi_cuda_buffer *bhi_cuda_buffer_import(const struct bhi_cuda_device *device, uint64_t id,
                                               int fd, uint64_t size);
/* Zeroes all of its device memory, and waits for that. */
CUresult bhi_cuda_buffer_clear(const struct bhi_cuda_device *device, struct bhi_cuda_buffer *buffer,
                               const char **out_call);
void bhi_cuda_buffer_destroy(const struct bhi_cuda_device *device, struct bhi_cuda_buffer *buffer);
/* Makes the stage, if there is none, or registers the buffer for reading. Both return false and
 * *error. */
bool bhi_cuda_buffer_stage(const struct bhi_cuda_device *device, struct bhi_cuda_buffer *buffer,
                           struct bhi_error *error);
/* Registers it for writing: copies from the device need no staging then. Returns false if it cannot. */
bool bhi_cuda_buffer_pin(const struct bhi_cuda_device *device, struct bhi_cuda_buffer *buffer);
CUresult bhi_cuda_buffer_unpin(const struct bhi_cuda_device *device,
                               struct bhi_cuda_buffer *buffer);
bool bhi_cuda_buffer_register(const struct bhi_cuda_device *device, struct bhi_cuda_buffer *buffer,
                              struct bhi_error *error);

#endif
