/* What contexts and workers hold of the pool (pool.h). */
#ifndef BHI_SUPERVISOR_BUFFER_POOL_TYPES_H
#define BHI_SUPERVISOR_BUFFER_POOL_TYPES_H

#include "base/list.h"
#include <bulkhead/bulkhead.h>

/* Four to a power of two, from a page to 2^18 pages (1 GiB). */
#define BHI_POOL_CLASSES 68

struct bhi_pool {
    uint64_t limit;       /* of what is FREE, in bytes; set once, before others see it */
    uint32_t most;        /* blocks: each has a descriptor of this process */
    bool closed;          /* lock */
    bh_pool_stats stats;  /* lock */
    struct bhi_list ages; /* lock: bhi_block.age, FREE, the oldest first */
    struct bhi_list shelves[BHI_POOL_CLASSES]; /* lock: FREE, without exposures */
};

/* A worker's part. Lock. */
struct bhi_pool_user {
    struct bhi_list exposures;                 /* bhi_exposure.of_worker */
    struct bhi_list shelves[BHI_POOL_CLASSES]; /* FREE, exposed to this worker alone */
};

#endif
