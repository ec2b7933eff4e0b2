/* Memory for the objects that callers hold: of one type for ever.
 *
 * A caller that uses an object after its last release, or releases it twice, finds a dead object of
 * the same type or, much later, another live one: never memory that means something else. What was
 * freed is used again in the order in which it was freed, and not before some more have been.
 *
 * The child of a fork begins with an empty one: in its copy another thread of the parent may hold
 * the lock for ever.
 */
#ifndef BHI_SUPERVISOR_CONTEXT_FREELIST_H
#define BHI_SUPERVISOR_CONTEXT_FREELIST_H

#include <stdatomic.h>
#include <stddef.h>

struct bhi_freelist_state;

struct bhi_freelist {
    size_t size;                                /* of one object */
    _Atomic(struct bhi_freelist_state *) state; /* NULL: never used */
    void *resting; /* the oldest free one again, where a leak checker finds it */
};
#define BHI_FREELIST_INIT(type) {.size = sizeof(type)}

/* Not cleared: what was there last is there still. NULL: out of memory. */
void *bhi_freelist_take(struct bhi_freelist *freelist);
/* Its handle must be dead, and stay so. */
void bhi_freelist_give(struct bhi_freelist *freelist, void *object);

#endif
