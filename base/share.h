/* How tenants share what there is a number of: places, turns, bytes. Each gets at most half of what
 * the others leave. So one tenant alone never takes all, and several do only together. */
#ifndef BHI_BASE_SHARE_H
#define BHI_BASE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if a tenant that has |own| may take |more|. |taken|: of |all|, by all tenants. */
static inline bool bhi_share_allows(uint64_t own, uint64_t more, uint64_t taken, uint64_t all) {
    return taken < all && own + more <= all - taken;
}

#endif
