/* The arguments of a CUDA kernel, which are known by their places: buffers become pointers, all others the
 * bytes of numbers. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

#define WHAT "launch"

enum { MOST = 256, MOST_BYTES = 4096, MOST_ALIGNED = 16 };

/* -- what a kernel takes ------------------------------------------------------------------------- */

/* (None, or [(dtype, bytes), …]; whether _arrange(args) gives what launches take; the most blocks of a
 * grid, 0: any): the parameters of the image, in order; None: it does not say. */
PyObject *bhi_py_kernel_set_positions(PyObject *object, PyObject *args) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    PyObject *list;
    struct bhi_py_position *all = NULL;
    Py_ssize_t count = 0;
    uint64_t room = 0;
    unsigned long long most = 0;
    int arranges = 0;
    if (!PyArg_ParseTuple(args, "O|pK:_set_positions", &list, &arranges, &most)) {
        return NULL;
    }
    if (list != Py_None) {
        count = PyList_Size(list);
        if (count < 0 || !(all = calloc(count ? (size_t)count : 1, sizeof *all))) {
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
        }
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int dtype;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "iI", &dtype, &all[i].bytes)) {
            free(all);
            return NULL;
        }
        all[i].dtype = (bh_dtype)dtype;
        room += all[i].bytes + MOST_ALIGNED;
    }
    if (self->reflected) { /* another thread was faster; both have learned the same */
        free(all);
        Py_RETURN_NONE;
    }
    self->positions = all;
    self->arranges = arranges;
    self->most_blocks = most;
    self->position_count = (uint32_t)count;
    self->buffer_count = all ? (uint32_t)count : MOST;
    self->push_size = all && room < MOST_BYTES ? (uint32_t)room : MOST_BYTES;
    self->reflected = true;
    Py_RETURN_NONE;
}

/* -- a number ------------------------------------------------------------------------------------ */

/* Where the next value of |bytes| goes (bh_kernel_create_image); NULL: there is no room. */
static uint8_t *place(struct bhi_py_dispatch *dispatch, size_t bytes) {
    const size_t lowest = bytes & -bytes, alignment = lowest < MOST_ALIGNED ? lowest : MOST_ALIGNED;
    if (!bytes || bytes > MOST_BYTES) {
        return NULL;
    }
    const size_t begin = (dispatch->push_size + alignment - 1) / alignment * alignment;
    if (begin + bytes > dispatch->kernel->push_size) {
        return NULL;
    }
    dispatch->push_size = (uint32_t)(begin + bytes);
    return dispatch->push + begin;
}

/* The bytes of a value that has a size of its own: of NumPy, of ctypes, or bytes, which are a struct. */
static bool view_value(PyObject *value, Py_buffer *out) {
    if (PyObject_GetBuffer(value, out, PyBUF_FULL_RO) < 0) {
        PyErr_Clear();
        return false;
    }
    if (out->ndim == 0 || PyBytes_Check(value)) {
        return true;
    }
    PyBuffer_Release(out);
    return false;
}

static bool add_sized(struct bhi_py_dispatch *dispatch, const struct bhi_py_position *position,
                      const Py_buffer *view, PyObject *name) {
    if (position && position->bytes != (size_t)view->len) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             WHAT ": %U: it has %zd bytes, and the kernel's parameter %u", name,
                             view->len, position->bytes);
    }
    uint8_t *at = place(dispatch, (size_t)view->len);
    if (!at) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": %U: more than 4096 bytes of values",
                             name);
    }
    memcpy(at, view->buf, (size_t)view->len);
    return true;
}

static bool add_number(struct bhi_py_dispatch *dispatch, const struct bhi_py_position *position,
                       PyObject *value, PyObject *name) {
    Py_buffer view;
    /* What is typed by both is converted: numpy.float64(2) for a float is 2.0f. */
    if (!position || position->dtype == BH_DTYPE_NONE) {
        if (view_value(value, &view)) {
            const bool good = add_sized(dispatch, position, &view, name);
            PyBuffer_Release(&view);
            return good;
        }
        return bhi_py_refuse_type(
            WHAT ": %U: a Buffer, or a value that has a type, such as numpy.float32(2), not %R: %s",
            name, (PyObject *)Py_TYPE(value),
            position ? "the kernel does not say what its bytes are"
                     : "the image does not say what the kernel's parameters are");
    }
    uint8_t *at = place(dispatch, position->bytes);
    if (!at) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": %U: more than 4096 bytes of values",
                             name);
    }
    /* A number of ctypes is none of Python, and has one. */
    PyObject *plain =
        PyNumber_Check(value) ? Py_NewRef(value) : PyObject_GetAttrString(value, "value");
    if (!plain) {
        PyErr_Clear();
        plain = Py_NewRef(value);
    }
    const bool good = bhi_py_number_store(plain, position->dtype, at, name, WHAT);
    Py_DECREF(plain);
    return good;
}

/* -- all of them --------------------------------------------------------------------------------- */

static bool is_buffer(PyObject *value) {
    return Py_IS_TYPE(value, bhi_py.bound) || PyObject_TypeCheck(value, bhi_py.buffer);
}

/* An array; one without dimensions is a number, and bytes are a struct. */
static bool is_array(PyObject *value) {
    Py_buffer view;
    if (view_value(value, &view)) {
        PyBuffer_Release(&view);
        return false;
    }
    return bhi_py_is_array(value);
}

static bool add(struct bhi_py_dispatch *dispatch, uint32_t index, PyObject *value, PyObject *name) {
    const struct bhi_py_kernel *kernel = dispatch->kernel;
    const struct bhi_py_position *position = kernel->positions ? &kernel->positions[index] : NULL;
    const bool buffer = is_buffer(value);
    if (!buffer && !is_array(value)) {
        return add_number(dispatch, position, value, name);
    }
    if (position && position->bytes != sizeof(void *)) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             WHAT ": %U: the kernel's parameter has %u bytes: it is no pointer",
                             name, position->bytes);
    }
    const struct bhi_py_parameter pointer = {
        .name = name,
        .is_binding = true,
        .binding = index,
        .count = 1,
        .first = dispatch->buffer_count,
        .access = buffer ? BH_ACCESS_READ_WRITE : BH_ACCESS_READ,
        .takes = UINT32_MAX,
    };
    dispatch->buffer_count++; /* also if it fails: then there is no storage */
    return bhi_py_dispatch_bind(dispatch, &pointer, 0, value);
}

/* Drops what was given before. */
static void drop(struct bhi_py_dispatch *dispatch) {
    for (uint32_t i = 0; i < dispatch->buffer_count; i++) {
        if (dispatch->uses[i].storage) {
            bhi_py_storage_unref(dispatch->uses[i].storage);
        }
    }
    memset(dispatch->uses, 0, dispatch->buffer_count * sizeof *dispatch->uses);
    memset(dispatch->push, 0, dispatch->push_size); /* also what is between two values */
    dispatch->buffer_count = dispatch->push_size = dispatch->given_count = 0;
}

bool bhi_py_dispatch_set_positions(struct bhi_py_dispatch *dispatch, PyObject *value) {
    const struct bhi_py_kernel *kernel = dispatch->kernel;
    if (!PyTuple_Check(value) && !PyList_Check(value)) {
        return bhi_py_refuse_type(WHAT ": args: a tuple, in the order of the kernel's parameters, "
                                       "not %R",
                                  (PyObject *)Py_TYPE(value));
    }
    PyObject *arranged = kernel->arranges
                             ? PyObject_CallMethod((PyObject *)kernel, "_arrange", "(O)", value)
                             : Py_NewRef(value);
    /* A number's own code may change a list. */
    PyObject *all = arranged ? PySequence_Tuple(arranged) : NULL;
    Py_XDECREF(arranged);
    const Py_ssize_t count = all ? PyTuple_Size(all) : 0;
    bool good = all;
    if (good && (kernel->positions ? count != kernel->position_count : count > MOST)) {
        good = bhi_py_refuse(
            BH_INVALID_ARGUMENT, WHAT ": args: %zd arguments, and the kernel takes %s%u", count,
            kernel->positions ? "" : "at most ", kernel->positions ? kernel->position_count : MOST);
    }
    if (good) {
        drop(dispatch);
    }
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *name = PyUnicode_FromFormat("args[%zd]", i);
        good = name && add(dispatch, (uint32_t)i, PyTuple_GetItem(all, i), name);
        Py_XDECREF(name);
    }
    Py_XDECREF(all);
    if (good) {
        dispatch->push_size = (dispatch->push_size + 3) / 4 * 4;
        dispatch->given_count = 1; /* |args|, maybe empty */
    }
    return good;
}
