/* Buffer: an array in memory that workers share. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

/* Strides of rows without gaps, in bytes. */
static void set_strides(struct bhi_py_buffer *self) {
    Py_ssize_t stride = bhi_py_dtypes[self->dtype].size;
    for (uint32_t i = self->rank; i > 0; i--) {
        self->shape[self->rank + i - 1] = stride;
        stride *= self->shape[i - 1] ? self->shape[i - 1] : 1;
    }
}

PyObject *bhi_py_buffer_new(struct bhi_py_storage *storage, bh_dtype dtype, uint32_t rank,
                            const uint64_t *shape, uint64_t offset) {
    uint64_t bytes = bhi_py_dtypes[dtype].size;
    bool empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        empty |= shape[i] == 0;
    }
    for (uint32_t i = 0; i < rank; i++) { /* strides must fit, too, also of an empty array */
        if (shape[i] && __builtin_mul_overflow(bytes, shape[i], &bytes)) {
            bytes = UINT64_MAX;
            break;
        }
    }
    bytes = bytes > PY_SSIZE_T_MAX ? UINT64_MAX : bytes;
    bytes = empty && bytes != UINT64_MAX ? 0 : bytes;
    if (offset > storage->size || bytes > storage->size - offset) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             "shape: the array does not fit the %llu bytes of the buffer",
                             (unsigned long long)storage->size);
    }
    struct bhi_py_buffer *self = bhi_py_new(bhi_py.new_buffer);
    if (!self) {
        return NULL;
    }
    self->storage = storage;
    bhi_py_storage_ref(storage);
    self->dtype = dtype;
    self->rank = rank;
    self->offset = offset;
    self->bytes = bytes;
    self->shape = calloc(rank ? 2 * rank : 1, sizeof *self->shape);
    self->shape_tuple = bhi_py_numbers(shape, rank);
    for (uint32_t i = 0; self->shape && i < rank; i++) {
        self->shape[i] = (Py_ssize_t)shape[i];
    }
    if (!self->shape || !self->shape_tuple) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    set_strides(self);
    return (PyObject *)self;
}

static void buffer_dealloc(PyObject *object) {
    struct bhi_py_buffer *self = (struct bhi_py_buffer *)object;
    if (self->storage && bhi_py_close(&self->handle)) {
        bhi_py_storage_unref(self->storage);
    }
    free(self->shape);
    Py_XDECREF(self->shape_tuple);
    bhi_py_free(object);
}

struct bhi_py_storage *bhi_py_buffer_use(PyObject *object, const char *what) {
    struct bhi_py_buffer *self = (struct bhi_py_buffer *)object;
    if (!bhi_py_enter(&self->handle)) {
        bhi_py_refuse(BH_CLOSED, "%s: the buffer was released", what);
        return NULL;
    }
    struct bhi_py_storage *storage = self->storage;
    bhi_py_storage_ref(storage);
    if (bhi_py_leave(&self->handle)) {
        bhi_py_storage_unref(storage); /* the reference of |self|, released meanwhile */
    }
    return storage;
}

static PyObject *buffer_release(PyObject *object, PyObject *unused) {
    struct bhi_py_buffer *self = (struct bhi_py_buffer *)object;
    (void)unused;
    if (bhi_py_close(&self->handle)) {
        bhi_py_storage_unref(self->storage);
    }
    Py_RETURN_NONE;
}

/* -- views --------------------------------------------------------------------------------------
 */

/* Begins a view that |exporter| shows, which has the reference to the storage. */
static int get_view(struct bhi_py_buffer *self, PyObject *exporter, Py_buffer *view, int flags,
                    bh_map_intent intent, uint64_t timeout_ns) {
    view->obj = NULL;
    struct bhi_py_storage *storage = bhi_py_buffer_use((PyObject *)self, "view");
    if (!storage) {
        return -1;
    }
    if (self->rank > PyBUF_MAX_NDIM) {
        bhi_py_refuse_view("the array has %u dimensions: a view has at most %d", self->rank,
                           PyBUF_MAX_NDIM);
    } else if (storage->stream) {
        bhi_py_refuse_view("the buffer is in device memory, which has no address: copy it by "
                           "numpy(), read() or write()");
    } else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && self->rank > 1) {
        bhi_py_refuse_view("the array is in C order");
    } else if (bhi_py_view_begin(storage, intent, timeout_ns, NULL)) {
        static char nothing;
        const struct bhi_py_dtype *type = &bhi_py_dtypes[self->dtype];
        const bool shaped = flags & PyBUF_ND; /* else it is so many bytes */
        const bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
        *view = (Py_buffer){
            .buf = storage->pointer ? (char *)storage->pointer + self->offset : &nothing,
            .obj = Py_NewRef(exporter),
            .len = (Py_ssize_t)self->bytes,
            .readonly = intent == BH_MAP_READ,
            .itemsize = type->size,
            .ndim = shaped ? (int)self->rank : 1,
            .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)type->format : NULL,
            .shape = shaped && self->rank ? self->shape : NULL,
            .strides = strided && self->rank ? self->shape + self->rank : NULL,
            .internal = storage,
        };
        return 0;
    }
    bhi_py_storage_unref(storage);
    return -1;
}

static int buffer_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    return get_view((struct bhi_py_buffer *)self, self, view, flags,
                    flags & PyBUF_WRITABLE ? BH_MAP_READ_WRITE : BH_MAP_READ, BH_FOREVER);
}

static void release_view(PyObject *self, Py_buffer *view) {
    struct bhi_py_storage *storage = view->internal;
    (void)self;
    bhi_py_view_end(storage, !view->readonly);
    bhi_py_storage_unref(storage);
}

/* Shows a buffer with an intent that the protocol cannot express. */
struct mapping {
    PyObject base;
    PyObject *buffer;
    bh_map_intent intent;
    uint64_t timeout_ns;
};

static int mapping_getbuffer(PyObject *object, Py_buffer *view, int flags) {
    struct mapping *self = (struct mapping *)object;
    if ((flags & PyBUF_WRITABLE) && self->intent == BH_MAP_READ) {
        view->obj = NULL;
        bhi_py_refuse_view("the view is for reading");
        return -1;
    }
    return get_view((struct bhi_py_buffer *)self->buffer, object, view, flags, self->intent,
                    self->timeout_ns);
}

static void mapping_dealloc(PyObject *object) {
    Py_XDECREF(((struct mapping *)object)->buffer);
    bhi_py_free(object);
}

static PyObject *buffer_map(PyObject *self, PyObject *args) {
    int intent;
    uint64_t timeout_ns;
    if (!PyArg_ParseTuple(args, "iO&:map", &intent, bhi_py_to_timeout, &timeout_ns)) {
        return NULL;
    }
    if (intent < BH_MAP_READ || intent > BH_MAP_READ_WRITE) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "map: %d is not an intent", intent);
    }
    struct mapping *mapping = bhi_py_new(bhi_py.mapping);
    if (mapping) {
        mapping->buffer = Py_NewRef(self);
        mapping->intent = (bh_map_intent)intent;
        mapping->timeout_ns = timeout_ns;
    }
    return (PyObject *)mapping;
}

/* -- attributes ---------------------------------------------------------------------------------
 */

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((struct bhi_py_buffer *)self)->shape_tuple);
}

static PyObject *get_number(PyObject *object, void *which) {
    const struct bhi_py_buffer *self = (struct bhi_py_buffer *)object;
    const struct bhi_py_dtype *type = &bhi_py_dtypes[self->dtype];
    const uint64_t numbers[] = {
        self->bytes, self->bytes / type->size, type->size, self->rank, self->offset, self->dtype};
    return PyLong_FromUnsignedLongLong(numbers[(uintptr_t)which]);
}

static PyObject *get_released(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(bhi_py_closed(&((struct bhi_py_buffer *)self)->handle));
}

static PyObject *get_context(PyObject *object, void *unused) {
    (void)unused;
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "context");
    PyObject *context = storage ? Py_NewRef((PyObject *)storage->context) : NULL;
    if (storage) {
        bhi_py_storage_unref(storage);
    }
    return context;
}

static PyObject *get_stream(PyObject *object, void *unused) {
    (void)unused;
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "stream");
    PyObject *stream = NULL;
    if (storage) {
        stream = Py_NewRef(storage->stream ? storage->stream : Py_None);
        bhi_py_storage_unref(storage);
    }
    return stream;
}

/* How many views there are now, and how many of them may be written. */
static PyObject *get_views(PyObject *object, void *unused) {
    (void)unused;
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "views");
    if (!storage) {
        return NULL;
    }
    PyObject *views = Py_BuildValue("(II)", storage->views, storage->writable);
    bhi_py_storage_unref(storage);
    return views;
}

/* The newest submission that writes the buffer, as an Event; None. */
static PyObject *get_event(PyObject *object, void *unused) {
    (void)unused;
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "event");
    if (!storage) {
        return NULL;
    }
    struct bhi_py_context *context = storage->context;
    bh_event *writer = NULL;
    if (!bhi_py_context_forked(context)) {
        pthread_mutex_lock(&context->views_lock);
        writer = storage->writer;
        bh_event_retain(writer);
        pthread_mutex_unlock(&context->views_lock);
    }
    PyObject *event = writer ? bhi_py_event_new(context, writer) : Py_NewRef(Py_None);
    bhi_py_storage_unref(storage);
    return event;
}

/* (status of the content, message): OK, TIMEOUT while it is pending, or that of its verdict. */
static PyObject *buffer_state(PyObject *object, PyObject *unused) {
    (void)unused;
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "state");
    if (!storage) {
        return NULL;
    }
    bh_detail detail = {.message = ""};
    void *pointer;
    bh_status status = BH_OK;
    if (!storage->stream) {
        status = bh_buffer_map(storage->buffer, BH_MAP_READ, 0, &pointer, &detail);
    } else if (bhi_py_context_forked(storage->context)) {
        status = BH_FORKED;
    } else {
        pthread_mutex_lock(&storage->context->views_lock);
        status = storage->writer ? bh_event_wait(storage->writer, 0) : BH_OK;
        pthread_mutex_unlock(&storage->context->views_lock);
    }
    bhi_py_storage_unref(storage);
    return Py_BuildValue("(iN)", (int)status, bhi_py_text(detail.message + detail.sentence));
}

/* Another Buffer of the same memory: (dtype, shape, offset). */
static PyObject *buffer_view(PyObject *object, PyObject *args) {
    const struct bhi_py_buffer *self = (struct bhi_py_buffer *)object;
    int dtype;
    PyObject *shape;
    unsigned long long offset;
    if (!PyArg_ParseTuple(args, "iO!K:view", &dtype, &PyTuple_Type, &shape, &offset)) {
        return NULL;
    }
    uint64_t sizes[BH_MAX_RANK];
    const Py_ssize_t rank = PyTuple_Size(shape);
    if (rank > BH_MAX_RANK || dtype < 0 || dtype >= BHI_PY_DTYPES) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "view: more than %d dimensions", BH_MAX_RANK);
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        sizes[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, i));
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "view");
    if (!storage) {
        return NULL;
    }
    PyObject *view =
        bhi_py_buffer_new(storage, (bh_dtype)dtype, (uint32_t)rank, sizes, self->offset + offset);
    bhi_py_storage_unref(storage);
    return view;
}

static PyMethodDef methods[] = {
    {"release", buffer_release, METH_NOARGS,
     "release($self, /)\n--\n\n"
     "Give the memory back. Views of it, and submissions that use it, keep it until they end."},
    {"_map", buffer_map, METH_VARARGS, NULL},
    {"_state", buffer_state, METH_NOARGS, NULL},
    {"_view", buffer_view, METH_VARARGS, NULL},
    {"_dlpack", BHI_PY_METHOD(bhi_py_buffer_dlpack), METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "Elements along each dimension.", NULL},
    {"nbytes", get_number, NULL, "Bytes of all elements.", (void *)0},
    {"size", get_number, NULL, "How many elements there are.", (void *)1},
    {"itemsize", get_number, NULL, "Bytes of one element.", (void *)2},
    {"ndim", get_number, NULL, "How many dimensions there are.", (void *)3},
    {"offset", get_number, NULL, "Where the array begins in its memory, in bytes.", (void *)4},
    {"_dtype", get_number, NULL, NULL, (void *)5},
    {"released", get_released, NULL, "Whether release() was called.", NULL},
    {"context", get_context, NULL, "The context that the buffer belongs to.", NULL},
    {"_stream", get_stream, NULL, NULL, NULL},
    {"_views", get_views, NULL, NULL, NULL},
    {"event", get_event, NULL, "The newest submission that writes the buffer, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, buffer_dealloc},     {Py_tp_methods, methods},
    {Py_tp_getset, attributes},          {Py_bf_getbuffer, buffer_getbuffer},
    {Py_bf_releasebuffer, release_view}, {0, NULL},
};
PyType_Spec bhi_py_buffer_spec = {
    .name = "bulkhead._native.Buffer",
    .basicsize = sizeof(struct bhi_py_buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyType_Slot mapping_slots[] = {
    {Py_tp_dealloc, mapping_dealloc},
    {Py_bf_getbuffer, mapping_getbuffer},
    {Py_bf_releasebuffer, release_view},
    {0, NULL},
};
PyType_Spec bhi_py_mapping_spec = {
    .name = "bulkhead._native.Mapping",
    .basicsize = sizeof(struct mapping),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = mapping_slots,
};
