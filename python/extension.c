/* bulkhead._native: the module itself. */
#include "python/native.h"

#include <string.h>

/* The Python side says which classes and functions this module uses. */
static PyObject *install(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"Stream",          "Buffer",
                            "Kernel",          "Module",
                            "Event",           "make_error",
                            "make_poison",     "make_view_error",
                            "make_type_error", "explain_name",
                            "to_seconds",      "take_array",
                            "main_thread",     NULL};
    PyObject *classes[5], *functions[7];
    unsigned long main_thread;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOOOOOOOOOk:install", names, &classes[0],
                                     &classes[1], &classes[2], &classes[3], &classes[4],
                                     &functions[0], &functions[1], &functions[2], &functions[3],
                                     &functions[4], &functions[5], &functions[6], &main_thread)) {
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
    bhi_py.take_array = functions[6];
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
        bhi_py_append(&list, Py_BuildValue("(isiss)", status, name,
                                           (int)bh_status_classify((bh_status)status),
                                           bh_status_text((bh_status)status),
                                           bh_status_advice((bh_status)status)));
    }
    return list;
}

/* (reason) -> what to do; '' if the status says it */
static PyObject *reason_advice(PyObject *module, PyObject *reason) {
    (void)module;
    return bhi_py_text(bh_reason_advice((bh_reason)PyLong_AsLong(reason)));
}

/* All types of elements: (code, name, short name, typestr, bytes). */
static PyObject *dtypes(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (int i = 0; list && i < BHI_PY_DTYPES; i++) {
        const struct bhi_py_dtype *type = &bhi_py_dtypes[i];
        bhi_py_append(&list, Py_BuildValue("(isssI)", i, type->name, type->short_, type->typestr,
                                           type->size));
    }
    return list;
}

static PyObject *version(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyUnicode_FromString(bh_version_string());
}

static PyMethodDef functions[] = {
    {"bound", bhi_py_make_bound, METH_VARARGS, NULL},
    {"buffer_assign", bhi_py_buffer_assign, METH_VARARGS, NULL},
    {"buffer_at", bhi_py_buffer_at, METH_VARARGS, NULL},
    {"buffer_cuda_device", bhi_py_buffer_cuda_device, METH_O, NULL},
    {"buffer_create", bhi_py_buffer_create, METH_VARARGS, NULL},
    {"buffer_load", bhi_py_buffer_load, METH_VARARGS, NULL},
    {"buffer_map_cuda", bhi_py_buffer_map_cuda, METH_VARARGS, NULL},
    {"buffer_progress", bhi_py_buffer_progress, METH_VARARGS, NULL},
    {"buffer_wrap", bhi_py_buffer_wrap, METH_VARARGS, NULL},
    {"buffer_write_cuda", bhi_py_buffer_write_cuda, METH_VARARGS, NULL},
    {"examine", bhi_py_examine, METH_O, NULL},
    {"file_tensors", bhi_py_file_tensors, METH_VARARGS, NULL},
    {"kernel_create", bhi_py_kernel_create, METH_VARARGS, NULL},
    {"module_compile", bhi_py_module_compile, METH_VARARGS, NULL},
    {"stream_create", bhi_py_stream_create, METH_VARARGS, NULL},
    {"template_create", bhi_py_template_create, METH_VARARGS, NULL},
    {"tensor_take", bhi_py_tensor_take, METH_VARARGS, NULL},
    {"install", BHI_PY_METHOD(install), METH_VARARGS | METH_KEYWORDS, NULL},
    {"reason_advice", reason_advice, METH_O, NULL},
    {"statuses", statuses, METH_NOARGS, NULL},
    {"dtypes", dtypes, METH_NOARGS, NULL},
    {"version", version, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static const struct {
    PyTypeObject **type;
    PyType_Spec *spec;
} types[] = {
    {&bhi_py.context, &bhi_py_context_spec},     {&bhi_py.stream, &bhi_py_stream_spec},
    {&bhi_py.buffer, &bhi_py_buffer_spec},       {&bhi_py.mapping, &bhi_py_mapping_spec},
    {&bhi_py.kernel, &bhi_py_kernel_spec},       {&bhi_py.module, &bhi_py_module_spec},
    {&bhi_py.event, &bhi_py_event_spec},         {&bhi_py.bound, &bhi_py_bound_spec},
    {&bhi_py.launch, &bhi_py_launch_spec},       {&bhi_py.template_, &bhi_py_template_spec},
    {&bhi_py.queue, &bhi_py_queue_spec},         {&bhi_py.log, &bhi_py_log_spec},
    {&bhi_py.tensor, &bhi_py_tensor_spec},       {&bhi_py.judge, &bhi_py_judge_spec},
    {&bhi_py.cuda_view, &bhi_py_cuda_view_spec},
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
    for (size_t i = 0; i < BHI_PY_COUNT(types); i++) {
        PyType_Spec *spec = types[i].spec;
        PyObject *type = PyType_FromSpec(spec);
        if (!type || PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type) < 0) {
            Py_DECREF(module);
            return NULL;
        }
        *types[i].type = (PyTypeObject *)type; /* with a reference, for as long as we live */
    }
    bhi_py_watch_forks();
    return module;
}
