/* bulkhead._native: the module itself. */
#include "python/native.h"

/* The Python side says which classes and functions this module uses. */
static PyObject *install(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"Stream",
                            "Buffer",
                            "Kernel",
                            "Module",
                            "Event",
                            "make_error",
                            "make_poison",
                            "make_view_error",
                            "make_type_error",
                            "explain_name",
                            "to_seconds",
                            "main_thread",
                            NULL};
    PyObject *classes[5], *functions[6];
    unsigned long main_thread;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOOOOOOOOk:install", names, &classes[0],
                                     &classes[1], &classes[2], &classes[3], &classes[4],
                                     &functions[0], &functions[1], &functions[2], &functions[3],
                                     &functions[4], &functions[5], &main_thread)) {
        return NULL;
    }
    if (bhi_py.make_error) {
        PyErr_SetString(PyExc_RuntimeError, "bulkhead is in use by another interpreter already");
        return NULL;
    }
    PyTypeObject *const bases[] = {bhi_py.stream, bhi_py.buffer, bhi_py.kernel, bhi_py.module,
                                   bhi_py.event};
    for (size_t i = 0; i < BHI_PY_COUNT(classes); i++) {
        if (!PyType_Check(classes[i]) || !PyType_IsSubtype((PyTypeObject *)classes[i], bases[i])) {
            PyErr_SetString(PyExc_TypeError, "install: a class has the wrong base");
            return NULL;
        }
        Py_INCREF(classes[i]);
    }
    for (size_t i = 0; i < BHI_PY_COUNT(functions); i++) {
        Py_INCREF(functions[i]);
    }
    bhi_py.new_stream = (PyTypeObject *)classes[0];
    bhi_py.new_buffer = (PyTypeObject *)classes[1];
    bhi_py.new_kernel = (PyTypeObject *)classes[2];
    bhi_py.new_module = (PyTypeObject *)classes[3];
    bhi_py.new_event = (PyTypeObject *)classes[4];
    bhi_py.make_error = functions[0];
    bhi_py.make_poison = functions[1];
    bhi_py.make_view_error = functions[2];
    bhi_py.make_type_error = functions[3];
    bhi_py.explain_name = functions[4];
    bhi_py.to_seconds = functions[5];
    bhi_py.main_thread = main_thread;
    Py_RETURN_NONE;
}

/* All statuses: (code, name, class, text, advice). */
static PyObject *statuses(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (int status = 0; list && status < 256; status++) {
        const char *name = bh_status_name((bh_status)status);
        if (status > 0 && bh_status_classify((bh_status)status) == BH_STATUS_CLASS_NONE &&
            status != BH_TIMEOUT && status != BH_PENDING) {
            continue; /* no such code */
        }
        PyObject *tuple =
            Py_BuildValue("(isiss)", status, name, (int)bh_status_classify((bh_status)status),
                          bh_status_text((bh_status)status), bh_status_advice((bh_status)status));
        if (!tuple || PyList_Append(list, tuple) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tuple);
    }
    return list;
}

/* All types of elements: (code, name, short name, typestr, bytes). */
static PyObject *dtypes(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (int i = 0; list && i < BHI_PY_DTYPES; i++) {
        const struct bhi_py_dtype *type = &bhi_py_dtypes[i];
        PyObject *tuple =
            Py_BuildValue("(isssI)", i, type->name, type->short_, type->typestr, type->size);
        if (!tuple || PyList_Append(list, tuple) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tuple);
    }
    return list;
}

static PyObject *version(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyUnicode_FromString(bh_version_string());
}

static PyMethodDef functions[] = {
    {"install", BHI_PY_METHOD(install), METH_VARARGS | METH_KEYWORDS, NULL},
    {"statuses", statuses, METH_NOARGS, NULL},
    {"dtypes", dtypes, METH_NOARGS, NULL},
    {"version", version, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "bulkhead._native",
    .m_doc = "What the package bulkhead is made of. Use the package.",
    .m_size = -1, /* one interpreter of the process uses it */
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) {
        return NULL;
    }
    if (!bhi_py_add_context(module) || !bhi_py_add_stream(module) || !bhi_py_add_buffer(module) ||
        !bhi_py_add_making(module) || !bhi_py_add_kernel(module) || !bhi_py_add_module(module) ||
        !bhi_py_add_event(module) || !bhi_py_add_bound(module) || !bhi_py_add_launch(module) ||
        !bhi_py_add_template(module) || !bhi_py_add_queue(module) || !bhi_py_add_log_type(module) ||
        !bhi_py_add_tensor(module) || !bhi_py_add_judge(module)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
