/* A set of 64-bit ids: which buffers and kernels a worker knows. */
#ifndef BHI_BASE_IDSET_H
#define BHI_BASE_IDSET_H

#include "base/map.h"

struct bhi_idset {
    struct bhi_map map;
};

static inline bool bhi_idset_has(const struct bhi_idset *set, uint64_t id) {
    return bhi_map_get(&set->map, id);
}
/* Makes room for |more| further ids, so that adding them cannot fail. False: out of memory. */
static inline bool bhi_idset_reserve(struct bhi_idset *set, size_t more) {
    return bhi_map_reserve(&set->map, more);
}
static inline void bhi_idset_add(struct bhi_idset *set, uint64_t id) {
    bhi_map_add(&set->map, id, set);
}
static inline bool bhi_idset_remove(struct bhi_idset *set, uint64_t id) { /* true: it was in */
    return bhi_map_remove(&set->map, id);
}
static inline void bhi_idset_fini(struct bhi_idset *set) {
    bhi_map_fini(&set->map);
}

#endif
