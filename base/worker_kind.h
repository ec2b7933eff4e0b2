/* What a worker is for. The first and the last kind have a device. */
#ifndef BHI_BASE_WORKER_KIND_H
#define BHI_BASE_WORKER_KIND_H

#include <stdbool.h>

enum bhi_worker_kind {
    BHI_WORKER_DEVICE = 0,   /* runs kernels */
    BHI_WORKER_LOADER = 1,   /* reads files */
    BHI_WORKER_COMPILER = 2, /* compiles a source, once */
    BHI_WORKER_SENTINEL = 3, /* sets the abort words of workers that have died */
};

static inline bool bhi_worker_has_device(enum bhi_worker_kind kind) {
    return kind == BHI_WORKER_DEVICE || kind == BHI_WORKER_SENTINEL;
}

#endif
