/* A set of 64-bit ids (0 is not one): which buffers and kernels a worker knows. */
#ifndef BHI_BASE_IDSET_H
#define BHI_BASE_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_idset {
    uint64_t *slots; /* open addressing; 0 free, UINT64_MAX removed */
    size_t capacity; /* 0 or a power of two */
    size_t used;     /* slots that are not free */
    size_t count;
};

bool bhi_idset_has(const struct bhi_idset *set, uint64_t id);
/* Makes room for |more| further ids, so that adding them cannot fail. False: out of memory. */
bool bhi_idset_reserve(struct bhi_idset *set, size_t more);
void bhi_idset_add(struct bhi_idset *set, uint64_t id);
bool bhi_idset_remove(struct bhi_idset *set, uint64_t id); /* true: it was in */
void bhi_idset_fini(struct bhi_idset *set);

#endif
