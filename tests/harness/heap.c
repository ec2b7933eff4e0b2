/* Counts the blocks of memory that the program itself has: what it allocates (not what libraries do) and has
 * not freed. Link it with bulkhead_wraps(); the harness then compares before and after. */
#include "../hostile/wrap.h"
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

#define SLOTS (1u << 17)

/* Turned round, so that a leak checker does not take this for a use. Linear probing. */
static struct {
    pthread_mutex_t lock;
    uintptr_t blocks[SLOTS];
    size_t count;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t home(uintptr_t block) {
    return (size_t)((uint64_t)block * UINT64_C(0x9e3779b97f4a7c15) >> 47);
}

static void add(void *pointer) {
    const uintptr_t block = ~(uintptr_t)pointer;
    if (!pointer) {
        return;
    }
    pthread_mutex_lock(&heap.lock);
    if (++heap.count == SLOTS) {
        abort();
    }
    size_t at = home(block);
    while (heap.blocks[at] != 0) {
        at = (at + 1) % SLOTS;
    }
    heap.blocks[at] = block;
    pthread_mutex_unlock(&heap.lock);
}

/* Not all that is freed here was allocated here. */
static void drop(const void *pointer) {
    const uintptr_t block = ~(uintptr_t)pointer;
    pthread_mutex_lock(&heap.lock);
    size_t at = home(block);
    while (heap.blocks[at] != 0 && heap.blocks[at] != block) {
        at = (at + 1) % SLOTS;
    }
    heap.count -= heap.blocks[at] != 0;
    for (size_t next = at; heap.blocks[at] != 0;) {
        next = (next + 1) % SLOTS;
        const uintptr_t moved = heap.blocks[next];
        if (moved != 0 && (next - home(moved)) % SLOTS < (next - at) % SLOTS) {
            continue; /* it stays reachable */
        }
        heap.blocks[at] = moved;
        at = next;
    }
    pthread_mutex_unlock(&heap.lock);
}

size_t bht_heap_blocks(void) {
    return heap.count;
}

WRAP(void *, malloc, size_t size) {
    void *made = __real_malloc(size);
    add(made);
    return made;
}

WRAP(void *, calloc, size_t count, size_t size) {
    void *made = __real_calloc(count, size);
    add(made);
    return made;
}

WRAP(void *, realloc, void *old, size_t size) {
    void *made = __real_realloc(old, size);
    if (made) {
        drop(old);
        add(made);
    }
    return made;
}

WRAP(void, free, void *pointer) {
    drop(pointer);
    __real_free(pointer);
}
