/* A worker's share of the memory of the pools (supervisor/buffer/pool.h): which
 * blocks it may still touch. Lock held. */
#ifndef BHI_SUPERVISOR_WORKER_POOL_USER_H
#define BHI_SUPERVISOR_WORKER_POOL_USER_H

#include "base/list.h"

/* Size classes: four to a power of two, from a page to 2^18 pages (1 GiB). */
#define BHI_POOL_CLASSES 68

/* Lock. */
struct bhi_pool_user {
    struct bhi_list exposures;                   /* bhi_exposure.of_worker */
    struct bhi_list shelves[BHI_POOL_CLASSES];   /* FREE, exposed to this worker alone */
    struct bhi_list unwritten[BHI_POOL_CLASSES]; /* the same, and only given to it to read */
};

static inline void bhi_pool_user_init(struct bhi_pool_user *user) {
    bhi_list_init(&user->exposures);
    for (int i = 0; i < BHI_POOL_CLASSES; i++) {
        bhi_list_init(&user->shelves[i]);
        bhi_list_init(&user->unwritten[i]);
    }
}

#endif
