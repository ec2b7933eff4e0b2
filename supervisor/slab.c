#include "slab.h"

#include <pthread.h>
#include <stdalign.h>
#include <sys/mman.h>

#define REST        32          /* freed objects that wait before the first of them is used again */
#define CHUNK_BYTES (64u << 10) /* asked of the system at a time, at least one object */

struct bhi_slab_slot {
    struct bhi_slab_slot *next;
    alignas(max_align_t) char object[];
};

/* In pages of its own, which a forked child sees as zeroes: an unlocked mutex (as
 * PTHREAD_MUTEX_INITIALIZER makes it) and nothing to give. */
struct bhi_slab_state {
    pthread_mutex_t lock;
    struct bhi_slab_slot *oldest, *newest; /* free ones */
    size_t free;
    struct bhi_slab_slot *fresh; /* never used yet */
    size_t fresh_count;
};

/* NULL: out of memory. */
static struct bhi_slab_state *state_of(struct bhi_slab *slab) {
    struct bhi_slab_state *state = atomic_load_explicit(&slab->state, memory_order_acquire);
    if (state)
        return state;
    struct bhi_slab_state *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    if (madvise(made, sizeof *made, MADV_WIPEONFORK) == 0 &&
        atomic_compare_exchange_strong(&slab->state, &state, made))
        return made;
    munmap(made, sizeof *made);
    return state; /* another thread was faster, or NULL */
}

static size_t stride(const struct bhi_slab *slab) {
    size_t bytes = sizeof(struct bhi_slab_slot) + slab->size;
    return (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
}

/* Straight from the system: no allocator's own tricks with what is freed and used again, and a leak
 * checker does not take what only a dead object points at for reachable. */
static struct bhi_slab_slot *take_fresh(struct bhi_slab_state *state, size_t bytes) {
    if (!state->fresh_count) {
        size_t count = CHUNK_BYTES / bytes;
        count = count ? count : 1;
        void *chunk =
            mmap(NULL, count * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED)
            return NULL;
        state->fresh = chunk;
        state->fresh_count = count;
    }
    struct bhi_slab_slot *slot = state->fresh;
    state->fresh = (struct bhi_slab_slot *)(void *)((char *)slot + bytes);
    state->fresh_count--;
    return slot;
}

static struct bhi_slab_slot *take_oldest(struct bhi_slab_state *state) {
    struct bhi_slab_slot *slot = state->oldest;
    if (!slot)
        return NULL;
    state->oldest = slot->next;
    state->free--;
    return slot;
}

void *bhi_slab_take(struct bhi_slab *slab) {
    struct bhi_slab_state *state = state_of(slab);
    if (!state)
        return NULL;
    pthread_mutex_lock(&state->lock);
    struct bhi_slab_slot *slot =
        state->free > REST ? take_oldest(state) : take_fresh(state, stride(slab));
    if (!slot)
        slot = take_oldest(state);
    pthread_mutex_unlock(&state->lock);
    return slot ? slot->object : NULL;
}

void bhi_slab_give(struct bhi_slab *slab, void *object) {
    struct bhi_slab_state *state = state_of(slab); /* it is there: the object was taken from it */
    struct bhi_slab_slot *slot =
        (struct bhi_slab_slot *)(void *)((char *)object - offsetof(struct bhi_slab_slot, object));
    slot->next = NULL;
    pthread_mutex_lock(&state->lock);
    if (state->free)
        state->newest->next = slot;
    else
        state->oldest = slot;
    state->newest = slot;
    state->free++;
    pthread_mutex_unlock(&state->lock);
}
