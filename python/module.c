/* Module: a source that is compiled while the program goes on. */
#include "python/native.h"

#include <stdlib.h>

struct module {
    PyObject base;
    bh_module *module; /* referenced */
    bool cuda;         /* its kernels are for CUDA devices */
    PyObject *event;   /* a reference: the Event of the compile */
    struct bhi_py_context *context;
};

static void module_dealloc(PyObject *object) {
    struct module *self = (struct module *)object;
    bh_module_release(self->module);
    Py_XDECREF(self->event);
    Py_XDECREF((PyObject *)self->context);
    bhi_py_free(object);
}

/* (context, source) -> Module */
PyObject *bhi_py_module_compile(PyObject *extension, PyObject *args) {
    struct bhi_py_context *context;
    bh_source source;
    PyObject *tuple;
    (void)extension;
    if (!PyArg_ParseTuple(args, "O!O!:module_compile", bhi_py.context, &context, &PyTuple_Type,
                          &tuple) ||
        !bhi_py_context_check(context) || !bhi_py_source_init(&source, "compile", tuple)) {
        return NULL;
    }
    bh_module *module = NULL;
    bh_event *event = NULL;
    bh_detail detail;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_module_compile(context->context, &source, &module, &event, &detail);
    Py_END_ALLOW_THREADS
    const bool cuda = source.language == BH_LANGUAGE_CUDA;
    bhi_py_source_fini(&source);
    if (status != BH_OK) {
        return bhi_py_fail(status, &detail);
    }
    PyObject *ended = bhi_py_event_new(context, event);
    struct module *self = ended ? bhi_py_new(bhi_py.new_module) : NULL;
    if (!self) {
        bh_module_release(module);
        Py_XDECREF(ended);
        return NULL;
    }
    bh_module_retain(module);
    ((struct bhi_py_event *)ended)->module = module;
    self->module = module;
    self->cuda = cuda;
    self->event = ended;
    self->context = (struct bhi_py_context *)Py_NewRef((PyObject *)context);
    return (PyObject *)self;
}

/* (name, trusted, specializations, block, shared_bytes) -> Kernel */
static PyObject *module_kernel(PyObject *object, PyObject *args) {
    struct module *self = (struct module *)object;
    PyObject *name, *list;
    bh_kernel_options options = {.struct_size = sizeof options};
    bh_kernel *kernel = NULL;
    bh_detail detail;
    int trusted;
    if (!PyArg_ParseTuple(args, "OpO!(III)I:_kernel", &name, &trusted, &PyList_Type, &list,
                          &options.block[0], &options.block[1], &options.block[2],
                          &options.shared_bytes) ||
        !bhi_py_context_check(self->context) ||
        (name != Py_None && !(options.name = bhi_py_utf8_text(name, "kernel", "name")))) {
        return NULL;
    }
    bh_specialization *specializations;
    if (!bhi_py_specializations(list, &specializations, &options.specialization_count)) {
        return NULL;
    }
    options.trusted = trusted;
    options.specializations = specializations;
    const bh_status status = bh_module_kernel(self->module, &options, &kernel, &detail);
    free(specializations);
    if (status == BH_OK) {
        return bhi_py_kernel_new(self->context, kernel, self->cuda);
    }
    bhi_py_fail(status, &detail);
    if (status == BH_COMPILE_FAILED) {
        bhi_py_add_log(bhi_py_source_log(self->module));
    }
    return NULL;
}

static PyObject *get_event(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef(((struct module *)object)->event);
}

static PyObject *get_log(PyObject *object, void *unused) {
    struct module *self = (struct module *)object;
    (void)unused;
    return bhi_py_context_check(self->context) ? bhi_py_source_log(self->module) : NULL;
}

static PyObject *get_context(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((struct module *)object)->context);
}

static PyMethodDef methods[] = {
    {"_kernel", module_kernel, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"event", get_event, NULL, "The event of the compile: wait for it, await or cancel it.", NULL},
    {"log", get_log, NULL,
     "The compiler's errors and warnings; '' while the compile is pending, and if the compiler "
     "crashed.",
     NULL},
    {"context", get_context, NULL, "The context that the module belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, module_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};
PyType_Spec bhi_py_module_spec = {
    .name = "bulkhead._native.Module",
    .basicsize = sizeof(struct module),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
