#include "supervisor/context/freelist.h"
#include "base/owner.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REST 32 /* number of freed objects that wait before the first of them is reused */

struct bhi_freelist_slot {
    struct bhi_freelist_slot *next;
    alignas(max_align_t) char object[];
};

/* In pages of its own, which a forked child sees as zeros: an unlocked mutex (like
 * PTHREAD_MUTEX_INITIALIZER) and an empty queue. */
struct bhi_freelist_state {
    pthread_mutex_t lock;
    struct bhi_freelist_slot *oldest, *newest; /* free ones */
    size_t free;
};

/* Returns NULL if out of memory. */
static struct bhi_freelist_state *state_of(struct bhi_freelist *freelist) {
    struct bhi_freelist_state *state = atomic_load_explicit(&freelist->state, memory_order_acquire);
    if (state) {
        return state;
    }
    const size_t size = sizeof *state;
    BHI_AUTO_MAPPING made = {
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size};
    if (made.at == MAP_FAILED) {
        return NULL;
    }
    if (madvise(made.at, size, MADV_WIPEONFORK) == 0 &&
        atomic_compare_exchange_strong(&freelist->state, &state,
                                       (struct bhi_freelist_state *)made.at)) {
        return bhi_mapping_steal(&made);
    }
    return state; /* of the thread that was faster; NULL if madvise failed */
}

static struct bhi_freelist_slot *take_oldest(struct bhi_freelist *freelist,
                                             struct bhi_freelist_state *state) {
    struct bhi_freelist_slot *slot = state->oldest;
    if (!slot) {
        return NULL;
    }
    state->oldest = slot->next;
    state->free--;
    freelist->resting = state->oldest;
    return slot;
}

void *bhi_freelist_take(struct bhi_freelist *freelist) {
    struct bhi_freelist_state *state = state_of(freelist);
    if (!state) {
        return NULL;
    }
    pthread_mutex_lock(&state->lock);
    struct bhi_freelist_slot *slot = state->free > REST ? take_oldest(freelist, state) : NULL;
    pthread_mutex_unlock(&state->lock);
    if (!slot) {
        /* Each object is an allocation of its own, so that a leak checker can report each object
         * that nothing points to. */
        slot = malloc(sizeof *slot + freelist->size);
    }
    return slot ? slot->object : NULL;
}

void bhi_freelist_give(struct bhi_freelist *freelist, void *object) {
    struct bhi_freelist_state *state =
        state_of(freelist); /* never NULL: the object was taken from it */
    struct bhi_freelist_slot *slot =
        (struct bhi_freelist_slot *)(void *)((char *)object -
                                             offsetof(struct bhi_freelist_slot, object));
    slot->next = NULL;
    pthread_mutex_lock(&state->lock);
    if (state->free) {
        state->newest->next = slot;
    } else {
        state->oldest = slot;
    }
    state->newest = slot;
    state->free++;
    freelist->resting = state->oldest;
    pthread_mutex_unlock(&state->lock);
}
