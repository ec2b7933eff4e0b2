/* Memory for the objects that callers hold. The memory of one type is never used for another.
 *
 * A caller that uses an object after its last release, or releases it twice, finds a dead object of
 * the same type or, much later, another live one: never memory that means something else. Freed
 * objects are reused in the order in which they were freed, and only after some more were.
 *
 * After a fork the child begins with an empty freelist: in its copy another thread of the parent
 * may hold the lock for ever.
 */
#ifndef BHI_SUPERVISOR_CONTEXT_FREELIST_H
#define BHI_SUPERVISOR_CONTEXT_FREELIST_H

#include <stdatomic.h>
#include <stddef.h>

struct bhi_freelist_state;

struct bhi_freelist {
    size_t size;                                /* of one object */
    _Atomic(struct bhi_freelist_state *) state; /* NULL: never used */
    void *resting; /* the oldest free object again, for leak checkers */
};
#define BHI_FREELIST_INIT(type) {.size = sizeof(type)}

/* The object is not cleared: a reused one has its last content. NULL: out of memory. */
void *bhi_freelist_take(struct bhi_freelist *freelist);
/* The object's handle must be dead, and stay dead. */
void bhi_freelist_give(struct bhi_freelist *freelist, void *object);

#endif
