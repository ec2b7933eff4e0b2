/* DLPack: arrays of other packages without a copy, and ours for them.
 *
 * A capsule "dltensor_versioned" (DLPack 1) can say that it is for reading; one of the older kind
 * "dltensor" cannot, so it counts as a view that may be written. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

/* -- DLPack's own structs -----------------------------------------------------------------------
 */

enum {
    DEVICE_CPU = 1,
    DEVICE_CUDA = 2,
    DEVICE_CUDA_HOST = 3,
    FLAG_READ_ONLY = 1,
    DLPACK_MAJOR = 1
};

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

/* A tensor of ours; it holds a view: |cuda|, or else |view|. */
struct exported {
    union {
        struct managed old;
        struct versioned new;
    };
    PyObject *cuda; /* a CudaView, a reference */
    Py_buffer view;
    int64_t numbers[2 * BH_MAX_RANK]; /* shape and strides */
};

static void end_view(struct exported *exported) {
    if (exported->cuda) {
        Py_CLEAR(exported->cuda);
    } else {
        PyBuffer_Release(&exported->view);
    }
}

/* The consumer may drop it in any thread, and after the interpreter has ended. */
static void drop_exported(struct exported *exported) {
    if (!Py_IsInitialized()) {
        return;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    end_view(exported);
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

/* (versioned, writable, CudaView or None, address and device there): a capsule. */
PyObject *bhi_py_buffer_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"versioned", "writable", "cuda", "address", "number", NULL};
    int is_versioned, writable, number = 0;
    unsigned long long address = 0;
    PyObject *cuda = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "pp|OKi:_dlpack", names, &is_versioned,
                                     &writable, &cuda, &address, &number)) {
        return NULL;
    }
    const struct bhi_py_buffer *buffer = (struct bhi_py_buffer *)self;
    const struct bhi_py_dtype *type = &bhi_py_dtypes[buffer->dtype];
    struct exported *exported = calloc(1, sizeof *exported);
    if (!exported) {
        return PyErr_NoMemory();
    }
    void *data;
    if (cuda != Py_None) {
        data = (void *)(uintptr_t)address;
        exported->cuda = Py_NewRef(cuda);
    } else if (PyObject_GetBuffer(self, &exported->view, writable ? PyBUF_FULL : PyBUF_FULL_RO) <
               0) {
        free(exported);
        return NULL;
    } else {
        data = exported->view.buf;
    }
    const int rank = (int)buffer->rank;
    for (int i = 0; i < rank; i++) {
        exported->numbers[i] = buffer->shape[i];
        exported->numbers[rank + i] = buffer->shape[rank + i] / (int64_t)type->size;
    }
    const struct dl_tensor tensor = {
        .data = data,
        .device = {exported->cuda ? DEVICE_CUDA : DEVICE_CPU, number},
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
        end_view(exported);
        free(exported);
    }
    return capsule;
}

/* -- in -----------------------------------------------------------------------------------------
 */

/* A tensor of another package, which the buffer protocol shows for reading; one of CUDA is not shown. */
struct tensor {
    PyObject base;
    struct managed *old;
    struct versioned *new;
    bh_dtype dtype;
    int rank;
    Py_ssize_t bytes;
    void *data;
    bool on_cuda;
    Py_ssize_t numbers[2 * PyBUF_MAX_NDIM]; /* shape and strides in bytes */
};

/* Checks what another package says of its tensor. */
static bool take_tensor(struct tensor *self, const struct dl_tensor *tensor) {
    if (self->on_cuda
            ? tensor->device.type != DEVICE_CUDA
            : tensor->device.type != DEVICE_CPU && tensor->device.type != DEVICE_CUDA_HOST) {
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

/* (capsule, whether its __dlpack_device__ is CUDA's) -> Tensor */
PyObject *bhi_py_tensor_take(PyObject *module, PyObject *args) {
    PyObject *capsule;
    int on_cuda;
    (void)module;
    if (!PyArg_ParseTuple(args, "Op:tensor_take", &capsule, &on_cuda)) {
        return NULL;
    }
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
    self->on_cuda = on_cuda;
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
    if (self->on_cuda || flags & PyBUF_WRITABLE || (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
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

/* (shape, address, is it in C order without gaps) */
static PyObject *get_place(PyObject *object, void *unused) {
    (void)unused;
    const struct tensor *self = (struct tensor *)object;
    uint64_t shape[PyBUF_MAX_NDIM];
    Py_ssize_t dense = bhi_py_dtypes[self->dtype].size;
    bool contiguous = true;
    for (int i = self->rank; i > 0; i--) {
        contiguous &= self->numbers[i - 1] <= 1 || self->numbers[self->rank + i - 1] == dense;
        dense *= self->numbers[i - 1];
        shape[i - 1] = (uint64_t)self->numbers[i - 1];
    }
    return Py_BuildValue("(NKN)", bhi_py_numbers(shape, (size_t)self->rank),
                         (unsigned long long)(uintptr_t)self->data,
                         PyBool_FromLong(contiguous || self->bytes == 0));
}

static PyGetSetDef attributes[] = {
    {"_dtype", get_dtype, NULL, NULL, NULL},
    {"_place", get_place, NULL, NULL, NULL},
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
