/* What a worker is for. Only the first kind has a device. */
#ifndef BHI_BASE_WORKER_KIND_H
#define BHI_BASE_WORKER_KIND_H

enum bhi_worker_kind {
    BHI_WORKER_DEVICE = 0,   /* runs kernels */
    BHI_WORKER_LOADER = 1,   /* reads files */
    BHI_WORKER_COMPILER = 2, /* compiles a source, once */
};

#endif
