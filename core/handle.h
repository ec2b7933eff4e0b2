/* A caller's references to an object, counted apart from the library's own.
 *
 * The library's references keep an object alive; a handle says whether the caller still has any. So
 * a reference that is dropped twice is told apart, and takes nothing from a submission on its way.
 * The memory of objects is never given back for another use (supervisor/context/freelist.h):
 * looking at a handle that was released long ago is harmless.
 */
#ifndef BHI_CORE_HANDLE_H
#define BHI_CORE_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bhi_handle {
    _Atomic uint32_t count;
};

static inline bool bhi_handle_live(const struct bhi_handle *handle) {
    return atomic_load_explicit(&handle->count, memory_order_relaxed) != 0;
}

/* What every public function asks of the objects that it is given. */
#define BHI_LIVE(object) ((object) && bhi_handle_live(&(object)->handle))

/* False: the caller has none, and can't get one this way. */
static inline bool bhi_handle_retain(struct bhi_handle *handle) {
    uint32_t count = atomic_load_explicit(&handle->count, memory_order_relaxed);
    while (count &&
           !atomic_compare_exchange_weak_explicit(&handle->count, &count, count + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    return count != 0;
}

enum bhi_drop {
    BHI_DROP_NONE, /* the caller had no reference */
    BHI_DROPPED,
    BHI_DROPPED_LAST, /* the library's reference, which it had for the caller, is to be dropped */
};

static inline enum bhi_drop bhi_handle_drop(struct bhi_handle *handle) {
    uint32_t count = atomic_load_explicit(&handle->count, memory_order_relaxed);
    while (count &&
           !atomic_compare_exchange_weak_explicit(&handle->count, &count, count - 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    return count == 0 ? BHI_DROP_NONE : count == 1 ? BHI_DROPPED_LAST : BHI_DROPPED;
}

#endif
