/* Using objects that can be closed meanwhile. */
#include "python/native.h"

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
