/* Handles, and the use of what can be closed meanwhile. */
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

bool bhi_py_stream_enter(struct bhi_py_stream *stream) {
    if (!bhi_py_context_check(stream->context)) {
        return false;
    }
    if (!bhi_py_enter(&stream->handle)) {
        return bhi_py_refuse(BH_CLOSED, "the stream was closed");
    }
    return true;
}

void bhi_py_stream_leave(struct bhi_py_stream *stream) {
    if (bhi_py_leave(&stream->handle)) {
        bh_stream_release(stream->stream);
    }
}

bool bhi_py_kernel_enter(struct bhi_py_kernel *kernel) {
    if (!bhi_py_enter(&kernel->handle)) {
        return bhi_py_refuse(BH_CLOSED, "the kernel was released");
    }
    return true;
}

void bhi_py_kernel_leave(struct bhi_py_kernel *kernel) {
    if (bhi_py_leave(&kernel->handle)) {
        bh_kernel_release(kernel->kernel);
    }
}
