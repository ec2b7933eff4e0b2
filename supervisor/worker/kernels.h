/* Which kernels a worker knows: told of, and not told to forget. Bounded by number and by bytes of
 * code, the longest unused forgotten first; never one that a submission in its lane uses, however
 * many those are. What was forgotten is introduced again when it is next used. Lock held. */
#ifndef BHI_SUPERVISOR_WORKER_KERNELS_H
#define BHI_SUPERVISOR_WORKER_KERNELS_H

#include "base/list.h"
#include "base/map.h"
#include <stdint.h>

struct bhi_worker_kernel {
    struct bhi_list link; /* the longest unused first */
    uint64_t id, bytes;
    uint64_t last_seq; /* of the newest submission in its lane that uses it */
    bool proven;       /* it has run there: that it cannot be compiled is a lie (T6) */
};

struct bhi_worker_kernels {
    struct bhi_list order;
    struct bhi_map map; /* by id */
    uint64_t bytes;
    uint32_t most; /* that were known at a time */
};

void bhi_worker_kernels_init(struct bhi_worker_kernels *known);
void bhi_worker_kernels_fini(struct bhi_worker_kernels *known);
bool bhi_worker_kernels_has(const struct bhi_worker_kernels *known, uint64_t id);
/* It is used by number |seq|. False: it is not known. */
bool bhi_worker_kernels_use(struct bhi_worker_kernels *known, uint64_t id, uint64_t seq);
/* It is known from now on. False: out of memory. */
bool bhi_worker_kernels_add(struct bhi_worker_kernels *known, uint64_t id, uint64_t bytes,
                            uint64_t seq);
bool bhi_worker_kernels_remove(struct bhi_worker_kernels *known,
                               uint64_t id); /* true: it was known */
void bhi_worker_kernels_prove(struct bhi_worker_kernels *known, uint64_t id);
/* It has run there, and what it was compiled to is still there: a worker that was never told of
 * more than |most| has given up none. */
bool bhi_worker_kernels_proven(const struct bhi_worker_kernels *known, uint64_t id, uint32_t most);
/* The one to be forgotten next, where there are more than |most| of them, or of |most_bytes|, and
 * all up to |done| have left the lane; 0: none. */
uint64_t bhi_worker_kernels_victim(const struct bhi_worker_kernels *known, uint32_t most,
                                   uint64_t most_bytes, uint64_t done);

#endif
