/* The types and classes that all files use, and making and freeing objects of them. */
#include "python/native.h"

#include <string.h>

struct bhi_py_module bhi_py;

PyTypeObject *bhi_py_add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (!type || PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type) < 0) {
        return NULL;
    }
    return (PyTypeObject *)type; /* with a reference, for as long as the process lives */
}

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
