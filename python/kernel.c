/* Kernel: a module with an entry point and constants. */
#include "python/native.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static PyObject *kernel_release(PyObject *object, PyObject *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    (void)unused;
    if (bhi_py_close(&self->handle)) {
        bh_kernel_release(self->kernel);
    }
    Py_RETURN_NONE;
}

static void kernel_dealloc(PyObject *object) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    if (bhi_py_close(&self->handle)) {
        bh_kernel_release(self->kernel);
    }
    for (uint32_t i = 0; i < self->parameter_count; i++) {
        Py_XDECREF(self->parameters[i].name);
        Py_XDECREF(self->parameters[i].type);
    }
    free(self->parameters);
    Py_XDECREF(self->names);
    Py_XDECREF((PyObject *)self->context);
    bhi_py_free(object);
}

/* -- creation -----------------------------------------------------------------------------------
 */

enum { LOG_SIZE = 32 << 10, MAX_SPECIALIZATIONS = 256 };

/* All that a creation uses: the Python objects behind it may go while it goes on. */
struct creation {
    struct bhi_py_task task;
    bh_context *context;
    bool compiles;
    char *code; /* the module, or the source */
    size_t size;
    char *name, *entry, *tenant;
    bool trusted, optimize, hlsl;
    uint64_t deadline_ns, memory_limit;
    bh_specialization *specializations;
    uint32_t specialization_count;
    bh_glsl_define *defines;
    uint32_t define_count;
    bh_glsl_include *includes;
    uint32_t include_count;
    char *log;
    bh_kernel *kernel;
    bh_status status;
    bh_detail detail;
};

static void run_creation(struct bhi_py_task *task) {
    struct creation *creation = (struct creation *)task;
    bh_kernel_options options;
    bh_kernel_options_init(&options);
    options.name = creation->name;
    options.entry = creation->entry;
    options.trusted = creation->trusted;
    options.specializations = creation->specializations;
    options.specialization_count = creation->specialization_count;
    if (!creation->compiles) {
        creation->status = bh_kernel_create_spirv(creation->context, creation->code, creation->size,
                                                  &options, &creation->kernel, &creation->detail);
        return;
    }
    bh_glsl_source source;
    bh_glsl_source_init(&source);
    source.text = creation->code;
    source.length = creation->size;
    source.name = creation->name;
    source.defines = creation->defines;
    source.define_count = creation->define_count;
    source.includes = creation->includes;
    source.include_count = creation->include_count;
    source.optimize = creation->optimize;
    source.deadline_ns = creation->deadline_ns;
    source.memory_limit = creation->memory_limit;
    source.tenant = creation->tenant;
    source.log = creation->log;
    source.log_size = LOG_SIZE;
    source.language = creation->hlsl ? BH_LANGUAGE_HLSL : BH_LANGUAGE_GLSL;
    creation->status = bh_kernel_create_glsl(creation->context, &source, &options,
                                             &creation->kernel, &creation->detail);
}

static void drop_creation(struct bhi_py_task *task) {
    struct creation *creation = (struct creation *)task;
    for (uint32_t i = 0; i < creation->define_count; i++) {
        free((char *)(uintptr_t)creation->defines[i].name);
        free((char *)(uintptr_t)creation->defines[i].value);
    }
    for (uint32_t i = 0; i < creation->include_count; i++) {
        free((char *)(uintptr_t)creation->includes[i].name);
        free((char *)(uintptr_t)creation->includes[i].text);
    }
    bh_kernel_release(creation->kernel);
    free(creation->defines);
    free(creation->includes);
    free(creation->specializations);
    free(creation->code);
    free(creation->name);
    free(creation->entry);
    free(creation->tenant);
    free(creation->log);
    free(creation);
}

/* A copy of the argument |what|, or of None (NULL). |out_size|: it may have NULs. Returns false
 * with an exception set. */
static bool copy_text(PyObject *value, const char *what, char **out, size_t *out_size) {
    Py_ssize_t size = 0;
    *out = NULL;
    if (value == Py_None) {
        return true;
    }
    const char *bytes = out_size ? bhi_py_utf8(value, "kernel", what, &size)
                                 : bhi_py_utf8_text(value, "kernel", what);
    if (!bytes) {
        return false;
    }
    const size_t length = out_size ? (size_t)size : strlen(bytes);
    *out = malloc(length + 1);
    if (!*out) {
        PyErr_NoMemory();
        return false;
    }
    memcpy(*out, bytes, length);
    (*out)[length] = 0;
    if (out_size) {
        *out_size = length;
    }
    return true;
}

static bool copy_defines(struct creation *creation, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    creation->defines = calloc(count ? (size_t)count : 1, sizeof *creation->defines);
    if (!creation->defines) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name, *value;
        char *name_copy, *value_copy = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OO", &name, &value) ||
            !copy_text(name, "defines", &name_copy, NULL)) {
            return false;
        }
        creation->defines[creation->define_count].name = name_copy;
        const bool copied = copy_text(value, "defines", &value_copy, NULL);
        creation->defines[creation->define_count++].value = value_copy;
        if (!copied) {
            return false;
        }
    }
    return true;
}

static bool copy_includes(struct creation *creation, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    creation->includes = calloc(count ? (size_t)count : 1, sizeof *creation->includes);
    if (!creation->includes) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name, *text;
        char *name_copy, *text_copy = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OO", &name, &text) ||
            !copy_text(name, "include", &name_copy, NULL)) {
            return false;
        }
        bh_glsl_include *include = &creation->includes[creation->include_count++];
        include->name = name_copy;
        const bool copied = copy_text(text, "include", &text_copy, &include->length);
        include->text = text_copy;
        if (!copied) {
            return false;
        }
    }
    return true;
}

static bool copy_specializations(struct creation *creation, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count > MAX_SPECIALIZATIONS) {
        bhi_py_refuse(BH_INVALID_ARGUMENT, "constants: more than %d", MAX_SPECIALIZATIONS);
        return false;
    }
    creation->specializations =
        calloc(count ? (size_t)count : 1, sizeof *creation->specializations);
    if (!creation->specializations) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned id, size;
        unsigned long long bits;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "IIK", &id, &size, &bits)) {
            return false;
        }
        creation->specializations[creation->specialization_count++] =
            (bh_specialization){.constant_id = id, .size = size, .bits = bits};
    }
    return true;
}

/* (context, code, compiles, name, entry, tenant, {trusted, optimize, hlsl, deadline, memory},
 * specializations, defines, includes) -> Kernel */
static PyObject *kernel_create(PyObject *module, PyObject *args) {
    static const struct bhi_py_field fields[] = {
        {"trusted", offsetof(struct creation, trusted), BHI_PY_BOOL},
        {"optimize", offsetof(struct creation, optimize), BHI_PY_BOOL},
        {"hlsl", offsetof(struct creation, hlsl), BHI_PY_BOOL},
        {"deadline", offsetof(struct creation, deadline_ns), BHI_PY_U64},
        {"memory", offsetof(struct creation, memory_limit), BHI_PY_U64},
    };
    struct bhi_py_context *context;
    PyObject *code, *options, *specializations, *defines, *includes, *name, *entry, *tenant;
    int compiles;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OpOOOO!O!O!O!:kernel_create", bhi_py.context, &context, &code,
                          &compiles, &name, &entry, &tenant, &PyDict_Type, &options, &PyList_Type,
                          &specializations, &PyList_Type, &defines, &PyList_Type, &includes) ||
        !bhi_py_context_check(context)) {
        return NULL;
    }
    struct creation *creation = calloc(1, sizeof *creation);
    if (!creation) {
        return PyErr_NoMemory();
    }
    creation->task = (struct bhi_py_task){.run = run_creation, .drop = drop_creation};
    creation->context = context->context;
    creation->compiles = compiles;
    creation->optimize = true;
    creation->log = calloc(1, LOG_SIZE);
    if (!creation->log || !copy_text(code, "source", &creation->code, &creation->size) ||
        !copy_text(name, "name", &creation->name, NULL) ||
        !copy_text(entry, "entry", &creation->entry, NULL) ||
        !copy_text(tenant, "tenant", &creation->tenant, NULL) ||
        !bhi_py_set_fields(creation, fields, BHI_PY_COUNT(fields), options, "kernel") ||
        !copy_specializations(creation, specializations) || !copy_defines(creation, defines) ||
        !copy_includes(creation, includes)) {
        drop_creation(&creation->task);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    struct bhi_py_kernel *self = NULL;
    if (!compiles) { /* this does not block */
        run_creation(&creation->task);
        atomic_store(&creation->task.refs, 1);
    }
    if (!compiles || bhi_py_task_run(&creation->task)) {
        if (creation->status == BH_COMPILE_FAILED && creation->log[0]) {
            PyObject *log = bhi_py_text(creation->log);
            bhi_py_fail(creation->status, &creation->detail);
            bhi_py_add_log(log);
            Py_XDECREF(log);
        } else if (creation->status != BH_OK) {
            bhi_py_fail(creation->status, &creation->detail);
        } else if ((self = bhi_py_new(bhi_py.new_kernel))) {
            self->kernel = creation->kernel;
            creation->kernel = NULL;
            self->context = (struct bhi_py_context *)Py_NewRef((PyObject *)context);
        }
    }
    bhi_py_task_unref(&creation->task);
    return (PyObject *)self;
}

/* -- attributes ---------------------------------------------------------------------------------
 */

static PyObject *get_name(PyObject *object, void *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    (void)unused;
    if (!bhi_py_kernel_enter(self)) {
        return NULL;
    }
    PyObject *name = bhi_py_text(bh_kernel_name(self->kernel));
    bhi_py_kernel_leave(self);
    return name;
}

static PyObject *get_hash(PyObject *object, void *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    uint8_t hash[32];
    (void)unused;
    if (!bhi_py_kernel_enter(self)) {
        return NULL;
    }
    bh_kernel_hash(self->kernel, hash);
    bhi_py_kernel_leave(self);
    return PyBytes_FromStringAndSize((const char *)hash, sizeof hash);
}

static PyObject *get_code(PyObject *object, void *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    size_t size = 0;
    bh_detail detail;
    (void)unused;
    if (!bhi_py_kernel_enter(self)) {
        return NULL;
    }
    bh_status status = bh_kernel_code(self->kernel, NULL, 0, &size, &detail);
    PyObject *code = status == BH_OK ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size) : NULL;
    if (code) {
        status = bh_kernel_code(self->kernel, PyBytes_AsString(code), size, &size, &detail);
    }
    bhi_py_kernel_leave(self);
    if (status != BH_OK) {
        Py_XDECREF(code);
        return bhi_py_fail(status, &detail);
    }
    return code;
}

static PyObject *get_released(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(bhi_py_closed(&((struct bhi_py_kernel *)object)->handle));
}

static PyObject *get_context(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((struct bhi_py_kernel *)object)->context);
}

static PyObject *kernel_prepare(PyObject *object, PyObject *args) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    struct bhi_py_stream *stream;
    bh_event *event = NULL;
    bh_detail detail;
    if (!PyArg_ParseTuple(args, "O!:prepare", bhi_py.stream, &stream) ||
        !bhi_py_kernel_enter(self)) {
        return NULL;
    }
    if (!bhi_py_stream_enter(stream)) {
        bhi_py_kernel_leave(self);
        return NULL;
    }
    const bh_status status = bh_kernel_prepare(self->kernel, stream->stream, &event, &detail);
    bhi_py_stream_leave(stream);
    bhi_py_kernel_leave(self);
    return status == BH_OK ? bhi_py_event_new(self->context, event) : bhi_py_fail(status, &detail);
}

static PyMethodDef methods[] = {
    {"release", kernel_release, METH_NOARGS,
     "release($self, /)\n--\n\nGive the kernel back. Submissions that use it keep it."},
    {"prepare", kernel_prepare, METH_VARARGS,
     "prepare($self, stream, /)\n--\n\n"
     "Have the stream's worker validate and compile the kernel, in the stream's order; return the\n"
     "Event. Without it the first launch does that."},
    {"_inspect", BHI_PY_METHOD(bhi_py_kernel_inspect), METH_VARARGS, NULL},
    {"_set_parameters", BHI_PY_METHOD(bhi_py_kernel_set_parameters), METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "The name of the kernel, for messages.", NULL},
    {"hash", get_hash, NULL, "What identifies the kernel: 32 bytes.", NULL},
    {"code", get_code, NULL, "The SPIR-V module, as it was given or compiled: bytes.", NULL},
    {"released", get_released, NULL, "Whether release() was called.", NULL},
    {"context", get_context, NULL, "The context that the kernel belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "bulkhead._native.Kernel",
    .basicsize = sizeof(struct bhi_py_kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyMethodDef functions[] = {
    {"kernel_create", kernel_create, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

bool bhi_py_add_kernel(PyObject *module) {
    bhi_py.kernel = bhi_py_add_type(module, &spec);
    return bhi_py.kernel && PyModule_AddFunctions(module, functions) == 0;
}
