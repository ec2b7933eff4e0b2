/* Buffers in the process's own CUDA (bulkhead/cuda.h): for PyTorch, CuPy, JAX, Numba. */
#include "python/native.h"

/* A view, which counts as one of the storage's until it is dropped. */
struct cuda_view {
    PyObject base;
    struct bhi_py_storage *storage; /* a reference; NULL: the view has not begun */
    bh_cuda_view *view;
    bool writable;
};

/* (buffer, intent, timeout) -> CudaView */
PyObject *bhi_py_buffer_map_cuda(PyObject *module, PyObject *args) {
    PyObject *buffer;
    int intent;
    uint64_t timeout_ns;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!iO&:map_cuda", bhi_py.buffer, &buffer, &intent,
                          bhi_py_to_timeout, &timeout_ns)) {
        return NULL;
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(buffer, "cuda");
    struct cuda_view *self = storage ? bhi_py_new(bhi_py.cuda_view) : NULL;
    if (self && bhi_py_view_begin(storage, (bh_map_intent)intent, timeout_ns, &self->view)) {
        self->storage = storage;
        self->writable = intent != BH_MAP_READ;
        return (PyObject *)self;
    }
    Py_XDECREF((PyObject *)self);
    if (storage) {
        bhi_py_storage_unref(storage);
    }
    return NULL;
}

/* (buffer, which shares the storage) -> its address; 0: it is empty */
static PyObject *address_of(PyObject *self, PyObject *buffer) {
    if (!PyObject_TypeCheck(buffer, bhi_py.buffer)) {
        return bhi_py_refuse_type("address: a Buffer, not %R", (PyObject *)Py_TYPE(buffer));
    }
    const uint64_t address = bh_cuda_view_address(((const struct cuda_view *)self)->view);
    const uint64_t offset = ((const struct bhi_py_buffer *)buffer)->offset;
    return PyLong_FromUnsignedLongLong(address ? address + offset : 0);
}

static void view_dealloc(PyObject *object) {
    struct cuda_view *self = (struct cuda_view *)object;
    if (self->storage) {
        bh_cuda_view *view = self->view;
        Py_BEGIN_ALLOW_THREADS /* it waits for the process's own work on the GPU */
        bh_cuda_view_release(view);
        Py_END_ALLOW_THREADS
        bhi_py_view_end(self->storage, self->writable);
        bhi_py_storage_unref(self->storage);
    }
    bhi_py_free(object);
}

/* (buffer) -> the number of its device in this process; None: it is on no CUDA device */
PyObject *bhi_py_buffer_cuda_device(PyObject *module, PyObject *buffer) {
    (void)module;
    if (!PyObject_TypeCheck(buffer, bhi_py.buffer)) {
        return bhi_py_refuse_type("cuda_device: a Buffer, not %R", (PyObject *)Py_TYPE(buffer));
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(buffer, "__dlpack_device__");
    if (!storage) {
        return NULL;
    }
    int number = 0;
    bh_detail detail = {0};
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_buffer_cuda_device(storage->buffer, &number, &detail);
    Py_END_ALLOW_THREADS
    bhi_py_storage_unref(storage);
    if (status == BH_OK) {
        return PyLong_FromLong(number);
    }
    return detail.reason == BH_REASON_NOT_ON_CUDA ? Py_NewRef(Py_None)
                                                  : bhi_py_fail(status, &detail);
}

/* (buffer, address): overwrites a new buffer, of which there are no views, with memory of CUDA's. */
PyObject *bhi_py_buffer_write_cuda(PyObject *module, PyObject *args) {
    PyObject *buffer;
    unsigned long long address;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!K:write_cuda", bhi_py.buffer, &buffer, &address)) {
        return NULL;
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(buffer, "array");
    if (!storage) {
        return NULL;
    }
    const struct bhi_py_buffer *self = (struct bhi_py_buffer *)buffer;
    bh_detail detail;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_buffer_write_cuda(storage->buffer, self->offset, address, self->bytes, BH_FOREVER,
                                  &detail);
    Py_END_ALLOW_THREADS
    bhi_py_storage_unref(storage);
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail_poison(status, &detail);
}

static PyMethodDef methods[] = {
    {"address", address_of, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};
PyType_Spec bhi_py_cuda_view_spec = {
    .name = "bulkhead._native.CudaView",
    .basicsize = sizeof(struct cuda_view),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
