#include "slab.h"

#include <stdalign.h>
#include <stdlib.h>

#define REST 32 /* freed objects that wait before the first of them is used again */

struct bhi_slab_slot {
    struct bhi_slab_slot *next;
    alignas(max_align_t) char object[];
};

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
    struct bhi_slab_slot *slot = slab->free > REST ? take_oldest(slab) : NULL;
    pthread_mutex_unlock(&slab->lock);
    if (!slot)
        /* Each by itself: a leak checker sees which of them nobody points at. */
        slot = malloc(sizeof *slot + slab->size);
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
