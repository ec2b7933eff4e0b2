/* DLPack: arrays of other packages without a copy, and ours for them.
 *
 * A capsule "dltensor_versioned" (DLPack 1) can say that it is for reading; one of the older kind
 * "dltensor" cannot, so it counts as a view that may be written. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

/* -- DLPack's own structs -----------------------------------------------------------------------
 */

enum { DEVICE_CPU = 1, DEVICE_CUDA_HOST = 3, FLAG_READ_ONLY = 1, DLPACK_MAJOR = 1 };

struct device {
    int32_t type, id;
};
struct data_type {
    uint8_t code, bits;
    uint16_t lanes;
};
struct dl_tensor {
    void *data;
    struct device device;
    int32_t rank;
    struct data_type type;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: rows without gaps */
    uint64_t offset;  /* bytes */
};
struct managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct managed *managed);
};
struct versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned *versioned);
    uint64_t flags;
    struct dl_tensor tensor;
};

/* -- out ----------------------------------------------------------------------------------------
 */

/* A tensor of ours; it holds a view. */
struct exported {
    union {
        struct managed old;
        struct versioned new;
    };
    Py_buffer view;
    int64_t numbers[2 * BH_MAX_RANK]; /* shape and strides */
};

/* The consumer may drop it in any thread, and after the interpreter has ended. */
static void drop_exported(struct exported *exported) {
    if (!Py_IsInitialized()) {
        return;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&exported->view);
    PyGILState_Release(state);
    free(exported);
}

static void drop_old(struct managed *managed) {
    drop_exported(managed->context);
}

static void drop_new(struct versioned *versioned) {
    drop_exported(versioned->context);
}

/* A capsule that nobody has taken. */
static void drop_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        drop_old(PyCapsule_GetPointer(capsule, "dltensor"));
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        drop_new(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    }
}

/* (versioned, writable): a capsule. */
PyObject *bhi_py_buffer_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"versioned", "writable", NULL};
    int is_versioned, writable;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "pp:_dlpack", names, &is_versioned, &writable)) {
        return NULL;
    }
    const struct bhi_py_buffer *buffer = (struct bhi_py_buffer *)self;
    const struct bhi_py_dtype *type = &bhi_py_dtypes[buffer->dtype];
    struct exported *exported = calloc(1, sizeof *exported);
    if (!exported) {
        return PyErr_NoMemory();
    }
    if (PyObject_GetBuffer(self, &exported->view, writable ? PyBUF_FULL : PyBUF_FULL_RO) < 0) {
        free(exported);
        return NULL;
    }
    const int rank = exported->view.ndim;
    for (int i = 0; i < rank; i++) {
        exported->numbers[i] = exported->view.shape[i];
        exported->numbers[rank + i] = exported->view.strides[i] / (int64_t)type->size;
    }
    const struct dl_tensor tensor = {
        .data = exported->view.buf,
        .device = {DEVICE_CPU, 0},
        .rank = rank,
        .type = {type->dlpack_code, type->dlpack_bits, 1},
        .shape = exported->numbers,
        .strides = exported->numbers + rank,
    };
    PyObject *capsule;
    if (is_versioned) {
        exported->new = (struct versioned){.major = DLPACK_MAJOR,
                                           .context = exported,
                                           .deleter = drop_new,
                                           .flags = writable ? 0 : FLAG_READ_ONLY,
                                           .tensor = tensor};
        capsule = PyCapsule_New(&exported->new, "dltensor_versioned", drop_capsule);
    } else {
        exported->old =
            (struct managed){.tensor = tensor, .context = exported, .deleter = drop_old};
        capsule = PyCapsule_New(&exported->old, "dltensor", drop_capsule);
    }
    if (!capsule) {
        PyBuffer_Release(&exported->view);
        free(exported);
    }
    return capsule;
}

/* -- in -----------------------------------------------------------------------------------------
 */

/* A tensor of another package, which the buffer protocol shows for reading. */
struct tensor {
    PyObject base;
    struct managed *old;
    struct versioned *new;
    bh_dtype dtype;
    int rank;
    Py_ssize_t bytes;
    void *data;
    Py_ssize_t numbers[2 * PyBUF_MAX_NDIM]; /* shape and strides in bytes */
};

/* Checks what another package says of its tensor. */
static bool take_tensor(struct tensor *self, const struct dl_tensor *tensor) {
    if (tensor->device.type != DEVICE_CPU && tensor->device.type != DEVICE_CUDA_HOST) {
        return bhi_py_refuse_view(
            "from_dlpack: the tensor is on a device (DLPack's type %d); bring it to "
            "the processor's memory first",
            (int)tensor->device.type);
    }
    if (tensor->rank < 0 || tensor->rank > PyBUF_MAX_NDIM) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "from_dlpack: the tensor has %d dimensions",
                             (int)tensor->rank);
    }
    if ((tensor->rank && !tensor->shape) || tensor->offset > INTPTR_MAX) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             "from_dlpack: the tensor has no shape, or begins %llu "
                             "bytes from its memory",
                             (unsigned long long)tensor->offset);
    }
    self->dtype = bhi_py_dtype_of_dlpack(tensor->type.code, tensor->type.bits);
    if (self->dtype == BH_DTYPE_NONE || tensor->type.lanes != 1) {
        return bhi_py_refuse_type(
            "from_dlpack: the library has no type with DLPack's code %d, %d bits and "
            "%d lanes",
            tensor->type.code, tensor->type.bits, tensor->type.lanes);
    }
    const Py_ssize_t size = bhi_py_dtypes[self->dtype].size;
    Py_ssize_t dense = size;
    self->rank = tensor->rank;
    for (int i = self->rank; i > 0; i--) {
        const int64_t length = tensor->shape[i - 1];
        int64_t stride;
        if (length < 0 || __builtin_mul_overflow(tensor->strides ? tensor->strides[i - 1] : 0,
                                                 (int64_t)size, &stride)) {
            return bhi_py_refuse(BH_INVALID_ARGUMENT,
                                 "from_dlpack: the tensor's shape or strides are "
                                 "out of range");
        }
        self->numbers[i - 1] = length;
        self->numbers[self->rank + i - 1] = tensor->strides ? stride : dense;
        if (__builtin_mul_overflow(dense, length, &dense)) {
            return bhi_py_refuse(BH_TOO_LARGE, "from_dlpack: the tensor is larger than any memory");
        }
    }
    self->bytes = dense;
    self->data = (char *)tensor->data + tensor->offset;
    return true;
}

/* (capsule) -> Tensor */
PyObject *bhi_py_tensor_take(PyObject *module, PyObject *capsule) {
    (void)module;
    const bool is_versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    if (!is_versioned && !PyCapsule_IsValid(capsule, "dltensor")) {
        return bhi_py_refuse_type(
            "from_dlpack: __dlpack__() returned %R, which is no capsule with a "
            "tensor, or one that was taken before",
            (PyObject *)Py_TYPE(capsule));
    }
    struct tensor *self = bhi_py_new(bhi_py.tensor);
    if (!self) {
        return NULL;
    }
    bool good;
    if (is_versioned) {
        struct versioned *tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        good = tensor->major == DLPACK_MAJOR;
        if (!good) {
            bhi_py_refuse_view("from_dlpack: the tensor is of DLPack %u", tensor->major);
        }
        good = good && take_tensor(self, &tensor->tensor);
        self->new = good ? tensor : NULL;
    } else {
        struct managed *tensor = PyCapsule_GetPointer(capsule, "dltensor");
        good = take_tensor(self, &tensor->tensor);
        self->old = good ? tensor : NULL;
    }
    /* From here on it is ours to delete. */
    if (!good || PyCapsule_SetName(capsule, is_versioned ? "used_dltensor_versioned"
                                                         : "used_dltensor") < 0) {
        self->old = NULL;
        self->new = NULL;
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
}

static void tensor_dealloc(PyObject *object) {
    struct tensor *self = (struct tensor *)object;
    if (self->old && self->old->deleter) {
        self->old->deleter(self->old);
    }
    if (self->new && self->new->deleter) {
        self->new->deleter(self->new);
    }
    bhi_py_free(object);
}

static int tensor_getbuffer(PyObject *object, Py_buffer *view, int flags) {
    struct tensor *self = (struct tensor *)object;
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE || (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        PyErr_SetString(PyExc_BufferError, "the tensor is shown for reading, with its strides");
        return -1;
    }
    *view = (Py_buffer){
        .buf = self->data,
        .obj = Py_NewRef(object),
        .len = self->bytes,
        .readonly = 1,
        .itemsize = bhi_py_dtypes[self->dtype].size,
        .ndim = self->rank,
        .format =
            flags & PyBUF_FORMAT ? (char *)(uintptr_t)bhi_py_dtypes[self->dtype].format : NULL,
        .shape = self->rank ? self->numbers : NULL,
        .strides = self->rank ? self->numbers + self->rank : NULL,
    };
    return 0;
}

static PyObject *get_dtype(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromLong(((struct tensor *)object)->dtype);
}

static PyGetSetDef attributes[] = {
    {"_dtype", get_dtype, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_getset, attributes},
    {Py_bf_getbuffer, tensor_getbuffer},
    {0, NULL},
};
PyType_Spec bhi_py_tensor_spec = {
    .name = "bulkhead._native.Tensor",
    .basicsize = sizeof(struct tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
