/* The caller's references to an object, counted apart from the library's references.
 *
 * The library's references keep an object alive. A handle says whether the caller still has a
 * reference. So the library detects a reference that is dropped twice, and a submission in progress
 * keeps its own. The memory of an object is never reused for anything else
 * (supervisor/context/freelist.h), so reading a handle that was released long ago is harmless.
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

/* Every public function checks its objects with this. */
#define BHI_LIVE(object) ((object) && bhi_handle_live(&(object)->handle))
/* Refuses an object that is NULL or was released (base/detail.h). */
#define BHI_NEED_LIVE(object, call, detail)                                                        \
    BHI_TRY(BHI_LIVE(object) ? BH_OK : BHI_FAIL(detail, call, BH_REASON_RELEASED, #object))

/* Adds a reference of the caller. Returns false, and adds none, if the caller has none left. */
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
    BHI_DROPPED_LAST, /* the library must now drop the reference that it held for the caller */
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
