#include "python/native.h"

#define CLOSED (1ll << 62)

bool bhi_py_enter(struct bhi_py_handle *handle) {
    long long state = atomic_load_explicit(&handle->state, memory_order_relaxed);
    do {
        if (state & CLOSED) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&handle->state, &state, state + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

bool bhi_py_leave(struct bhi_py_handle *handle) {
    return atomic_fetch_sub_explicit(&handle->state, 1, memory_order_acq_rel) == CLOSED + 1;
}

bool bhi_py_close(struct bhi_py_handle *handle) {
    return atomic_fetch_or_explicit(&handle->state, CLOSED, memory_order_acq_rel) == 0;
}

bool bhi_py_closed(struct bhi_py_handle *handle) {
    return atomic_load_explicit(&handle->state, memory_order_relaxed) & CLOSED;
}
