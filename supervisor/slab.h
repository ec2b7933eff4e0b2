/* Memory for the objects that callers hold: of one type for ever.
 *
 * A caller that uses an object after its last release, or releases it twice, finds a dead object of
 * the same type or, much later, another live one: never memory that means something else. What was
 * freed is used again in the order in which it was freed, and not before some more have been.
 */
#ifndef BHI_SLAB_H
#define BHI_SLAB_H

#include <pthread.h>
#include <stddef.h>

struct bhi_slab_slot;

struct bhi_slab {
    size_t size; /* of one object */
    pthread_mutex_t lock;
    struct bhi_slab_slot *oldest, *newest; /* free ones */
    size_t free;
};
#define BHI_SLAB_INIT(type)                                                                        \
    { .size = sizeof(type), .lock = PTHREAD_MUTEX_INITIALIZER }

/* Not cleared: what was there last is there still. NULL: out of memory. */
void *bhi_slab_take(struct bhi_slab *slab);
/* Its handle must be dead, and stay so. */
void bhi_slab_give(struct bhi_slab *slab, void *object);

#endif
