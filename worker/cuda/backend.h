/* Internals of the CUDA backend. The session's thread uses them. */
#ifndef BHI_WORKER_CUDA_BACKEND_H
#define BHI_WORKER_CUDA_BACKEND_H

#include "base/map.h"
#include "worker/backend/answers.h"
#include "worker/backend/ops.h"
#include "worker/cuda/buffer.h"
#include "worker/cuda/kernel.h"

/* The page that config.markers points to, or one of our own. Kernels of one stream share a context:
 * what can be written through a raw pointer there can be forged by a kernel, and so can what the
 * driver itself keeps there (docs/cuda.md). */
struct bhi_cuda_page {
    struct bhi_markers markers;
    _Atomic uint64_t command; /* of the record that runs: which dispatch is the next to run */
};

struct bhi_cuda_buffers {
    struct bhi_cuda_buffer **items;
    size_t count, capacity;
};

struct bhi_cuda_backend {
    struct bhi_backend base;
    struct bhi_cuda_device device;
    struct bhi_map buffers, kernels;
    struct bhi_cuda_kernel *reflected_first, *reflected_last;
    struct bhi_cuda_page *page;
    CUdeviceptr page_address;
    bool owns_page;        /* config.markers was NULL: records are not merged */
    CUevent events[64][2]; /* around a timed record, by its place in the batch; NULL: not yet */
    /* The record that is planned or enqueued (record.c), by its number; and its buffers: those whose
     * device memory it writes, and those that it stages. */
    uint64_t record;
    struct bhi_cuda_buffers wanted, staged;
    struct bhi_cuda_buffers writable; /* mapped for writing now (C1) */
    struct bhi_cuda_buffers pinned;   /* host memory, for copies from the device, until |has_run| */
    bool has_run;                     /* a kernel of the host's: from then on nothing is pinned */
    uint64_t submits, imported_bytes;
};

static inline struct bhi_cuda_backend *bhi_cuda_of(struct bhi_backend *backend) {
    return (struct bhi_cuda_backend *)backend;
}
static inline const struct bhi_cuda_backend *bhi_cuda_const(const struct bhi_backend *backend) {
    return (const struct bhi_cuda_backend *)backend;
}

bool bhi_cuda_buffers_add(struct bhi_cuda_buffers *list, struct bhi_cuda_buffer *buffer);
void bhi_cuda_buffers_remove(struct bhi_cuda_buffers *list, const struct bhi_cuda_buffer *buffer);

/* record.c */
/* Tells the supervisor whether host memory is pinned. */
void bhi_cuda_say_pinned(struct bhi_cuda_backend *backend);
/* Loads the kernel for the record |seq|; UINT64_MAX: for none. Returns NULL and *error. */
struct bhi_cuda_kernel *bhi_cuda_find_kernel(struct bhi_cuda_backend *backend, uint64_t id,
                                             uint64_t seq, struct bhi_error *error);
/* Checks a record, and prepares what it uses. Nothing of it runs yet. On failure returns false
 * and *error, with the command. */
bool bhi_cuda_plan(struct bhi_cuda_backend *backend, const struct bhi_lane_record *record,
                   struct bhi_error *error);
/* May the planned record run with what is mapped for writing now? Before a kernel that is exactly what its
 * record writes (C1); where no kernel runs, at least that. */
bool bhi_cuda_access_fits(const struct bhi_cuda_backend *backend,
                          const struct bhi_lane_record *record);
/* Maps for writing exactly what the planned record writes. Nothing runs. */
bool bhi_cuda_access_switch(struct bhi_cuda_backend *backend, const struct bhi_lane_record *record,
                            struct bhi_error *error);
/* Hands the planned record to the device. On failure returns false and *error: a part of it may run. */
bool bhi_cuda_enqueue(struct bhi_cuda_backend *backend, const struct bhi_lane_record *record,
                      struct bhi_error *error);

/* warm_up.c */
bool bhi_cuda_warm_up(struct bhi_backend *backend, struct bhi_error *error);
/* run.c */
bool bhi_cuda_run(struct bhi_backend *backend, const struct bhi_lane_record *const *records,
                  size_t count, struct bhi_result *results, struct bhi_error *errors);
bool bhi_cuda_warm(const struct bhi_backend *backend, const struct bhi_lane_record *record);

#endif
