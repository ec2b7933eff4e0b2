/* The types and classes that all files use, and making and freeing objects of them. */
#include "python/native.h"

struct bhi_py_module bhi_py;

void *bhi_py_new(PyTypeObject *type) {
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

void bhi_py_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    const freefunc free_ = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_(self);
    Py_DECREF((PyObject *)type);
}

void bhi_py_append(PyObject **list, PyObject *item) {
    if (!item || PyList_Append(*list, item) < 0) {
        Py_CLEAR(*list);
    }
    Py_XDECREF(item);
}

PyObject *bhi_py_numbers(const uint64_t *numbers, size_t count) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(tuple, (Py_ssize_t)i, number) < 0) {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}
