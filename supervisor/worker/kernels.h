/* The kernels that a worker knows: they were introduced to it, and it was not told to forget them.
 * Their number, and the bytes of their code, are limited. The kernel that was unused for the
 * longest time is forgotten first, but never one that a submission in the lane uses, however many
 * those are. A forgotten kernel is introduced again when it is next used. Lock held. */
#ifndef BHI_SUPERVISOR_WORKER_KERNELS_H
#define BHI_SUPERVISOR_WORKER_KERNELS_H

#include "base/list.h"
#include "base/map.h"
#include <stdint.h>

struct bhi_worker_kernel {
    struct bhi_list link; /* the longest unused first */
    uint64_t id, bytes;
    uint64_t last_seq; /* of the newest submission in its lane that uses it */
    bool image;        /* it is a CUDA image, which has parameters; other kernels have none */
    bool proven;       /* it has run there: a failed compile is a lie (T6) */
};

struct bhi_worker_kernels {
    struct bhi_list order;
    struct bhi_map map; /* by id */
    uint64_t bytes;
    uint32_t most; /* the most that were known at a time */
};

void bhi_worker_kernels_init(struct bhi_worker_kernels *known);
void bhi_worker_kernels_fini(struct bhi_worker_kernels *known);
bool bhi_worker_kernels_has(const struct bhi_worker_kernels *known, uint64_t id);
/* Notes that number |seq| uses the kernel. Returns false if it is not known. */
bool bhi_worker_kernels_use(struct bhi_worker_kernels *known, uint64_t id, uint64_t seq);
/* Adds a kernel. Returns false if out of memory. */
bool bhi_worker_kernels_add(struct bhi_worker_kernels *known, uint64_t id, uint64_t bytes,
                            bool image, uint64_t seq);
bool bhi_worker_kernels_remove(struct bhi_worker_kernels *known,
                               uint64_t id); /* true: it was known */
void bhi_worker_kernels_prove(struct bhi_worker_kernels *known, uint64_t id);
/* Returns true if the kernel has run there and its pipeline must still exist: a worker that never
 * knew more than |most| kernels has dropped none. */
bool bhi_worker_kernels_proven(const struct bhi_worker_kernels *known, uint64_t id, uint32_t most);
/* Returns the kernel to forget next if there are more than |most|, or more than |most_bytes|; 0:
 * none. Submissions up to |done| have left the lane. */
uint64_t bhi_worker_kernels_victim(const struct bhi_worker_kernels *known, uint32_t most,
                                   uint64_t most_bytes, uint64_t done);

#endif
