#include "slab.h"

#include <stdalign.h>
#include <sys/mman.h>

#define REST        32          /* freed objects that wait before the first of them is used again */
#define CHUNK_BYTES (64u << 10) /* asked of the system at a time, at least one object */

struct bhi_slab_slot {
    struct bhi_slab_slot *next;
    alignas(max_align_t) char object[];
};

static size_t stride(const struct bhi_slab *slab) {
    size_t bytes = sizeof(struct bhi_slab_slot) + slab->size;
    return (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
}

/* Straight from the system: no allocator's own tricks with what is freed and used again, and a leak
 * checker does not take what only a dead object points at for reachable. */
static struct bhi_slab_slot *take_fresh(struct bhi_slab *slab) {
    if (!slab->fresh_count) {
        size_t count = CHUNK_BYTES / stride(slab);
        count = count ? count : 1;
        void *chunk = mmap(NULL, count * stride(slab), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED)
            return NULL;
        slab->fresh = chunk;
        slab->fresh_count = count;
    }
    struct bhi_slab_slot *slot = slab->fresh;
    slab->fresh = (struct bhi_slab_slot *)(void *)((char *)slot + stride(slab));
    slab->fresh_count--;
    return slot;
}

static struct bhi_slab_slot *take_oldest(struct bhi_slab *slab) {
    struct bhi_slab_slot *slot = slab->oldest;
    if (!slot)
        return NULL;
    slab->oldest = slot->next;
    slab->free--;
    return slot;
}

void *bhi_slab_take(struct bhi_slab *slab) {
    pthread_mutex_lock(&slab->lock);
    struct bhi_slab_slot *slot = slab->free > REST ? take_oldest(slab) : take_fresh(slab);
    if (!slot)
        slot = take_oldest(slab);
    pthread_mutex_unlock(&slab->lock);
    return slot ? slot->object : NULL;
}

void bhi_slab_give(struct bhi_slab *slab, void *object) {
    struct bhi_slab_slot *slot =
        (struct bhi_slab_slot *)(void *)((char *)object - offsetof(struct bhi_slab_slot, object));
    slot->next = NULL;
    pthread_mutex_lock(&slab->lock);
    if (slab->free)
        slab->newest->next = slot;
    else
        slab->oldest = slot;
    slab->newest = slot;
    slab->free++;
    pthread_mutex_unlock(&slab->lock);
}
